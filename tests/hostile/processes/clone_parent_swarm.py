# Fills the limit on processes with siblings that end at once and become zombies of another process.
made = 0
for _ in range(200):
    pid = syscall(56, 0x8000 | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    made += pid > 0
if made:
    breach(f"left {made} zombies to another process")
