# Fills the limit on processes with sleepers, then pauses with all of them.
# tools: ask
children = 0
try:
    while children < 5000:
        spawn(time.sleep, 60)
        children += 1
except OSError:
    pass
if children >= 1000:
    breach(f"{children} processes at once")
await ask()
