# A child prints without end while the program waits for a tool.
# tools: ask
# pause: 500
spawn(lambda: [os.write(2, b"x" * 1000) for _ in iter(int, 1)])
await ask()
