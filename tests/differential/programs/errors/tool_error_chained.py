try:
    await fail("disk full")
except ToolExecutionError as e:
    raise RuntimeError("backup failed") from e
