import logging
logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s", stream=sys.stdout)
log = logging.getLogger("job")
log.info("starting")
try:
    await fail("no route")
except ToolExecutionError:
    log.exception("the job failed")
log.warning("done with %d error", 1)
