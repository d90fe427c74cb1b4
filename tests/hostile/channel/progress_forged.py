# Writes nonsense into the memory it shares with its supervisor, and calls.
# tools: ask
for thing in gc.get_objects():
    if type(thing).__name__ == "Progress":
        for numbers in ((4294967295, True, True), (0, False, False), (7, True, False)):
            thing.write(*numbers)
def scribble():
    while True:
        for thing in gc.get_objects():
            if type(thing).__name__ == "Progress":
                thing.write(99, True, True)
threading.Thread(target=scribble, daemon=True).start()
await ask()
