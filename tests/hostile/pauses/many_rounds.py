# Pauses without end.
# tools: ask
while True:
    await ask()
