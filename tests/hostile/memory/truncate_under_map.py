# Shortens a file under its own mapping (SIGBUS), also that of a call's input.
# tools: ask
with open("/tmp/m", "wb+") as file:
    file.truncate(1 << 16)
    view = mmap.mmap(file.fileno(), 1 << 16)
    file.truncate(0)
    await ask(text=str(view[0]))
