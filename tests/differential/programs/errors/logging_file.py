import logging
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(levelname)s %(lineno)d %(message)s")
logging.info("started")
try:
    1 / 0
except ZeroDivisionError:
    logging.error("failed", exc_info=True)
print(len(open("app.log").readlines()) > 3)
