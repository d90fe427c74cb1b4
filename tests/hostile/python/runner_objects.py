# Calls every method and empties every attribute of the runner's objects.
# tools: ask
# timeout: 1500
for thing in gc.get_objects():
    if type(thing).__module__.startswith("fermata"):
        for name in dir(thing):
            if not name.startswith("__"):
                value = attempt(getattr, thing, name)
                attempt(value) if callable(value) and name not in ("close",) else attempt(setattr, thing, name, None)
await ask()
