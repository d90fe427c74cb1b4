# Replaces every builtin by one that ends the process.
# tools: ask
import builtins
for name in dir(builtins):
    if name not in ("__name__", "setattr", "dir", "__import__"):
        attempt(setattr, builtins, name, lambda *a, **k: os._exit(77))
await ask()
