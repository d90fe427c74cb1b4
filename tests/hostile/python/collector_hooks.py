# Runs code of its own at each garbage collection, also while it is paused and ended.
# tools: ask
gc.callbacks.append(lambda phase, info: os.write(1, b"."))
gc.set_threshold(1, 1, 1)
gc.unfreeze()
await ask()
