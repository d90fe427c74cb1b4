import logging
logging.debug("hidden")
logging.warning("disk at %d%%", 91)
log = logging.getLogger("app.db")
log.setLevel(logging.DEBUG)
h = logging.StreamHandler(sys.stdout); h.setFormatter(logging.Formatter("%(levelname)s %(name)s %(lineno)d %(funcName)s %(message)s"))
log.addHandler(h)
def connect():
    log.debug("connecting")
connect()
