# Leaves as many zombies as it can and never waits for them.
made = 0
try:
    while made < 5000:
        spawn(int)
        made += 1
except OSError:
    pass
print(made > 10)
