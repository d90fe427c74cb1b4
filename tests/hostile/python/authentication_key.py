# Reads the key by which processes of the standard library trust each other, which must be its own.
# tools: ask
import multiprocessing
key = multiprocessing.current_process().authkey.hex()
print(len(key))
await ask(key=key)
