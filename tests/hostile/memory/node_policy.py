# Sets memory policies and moves pages of process 1 between nodes.
for number, arguments in ((238, (1, 0, 0)), (237, (0, 0, 0, 0, 0, 0)), (256, (1, 0, 0, 0)), (279, (1, 0, 0, 0, 0, 0)), (450, (0, 0, 0, 0))):
    if syscall(number, *arguments) >= 0 and number in (256, 279):
        breach(f"call {number} moved pages of process 1")
