# Refuses everything that the interpreter asks its audit hooks for.
# tools: ask
def hook(event, arguments):
    raise RuntimeError(event)
sys.addaudithook(hook)
await ask()
