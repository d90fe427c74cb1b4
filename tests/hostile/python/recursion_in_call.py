# Calls with an input that contains itself, and with one that is too deep.
# tools: ask
loop = []
loop.append(loop)
deep = current = []
for _ in range(100_000):
    current.append([])
    current = current[0]
for value in (loop, deep, {"x": loop}):
    try:
        await ask(x=value)
    except (ValueError, RecursionError, TypeError) as error:
        print(type(error).__name__)
