# Waits for children that open a pipe which nobody reads, in vfork and before they execute.
# timeout: 1000
r, w = os.pipe()
os.close(r)
for _ in range(5):
    attempt(os.posix_spawn, "/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 5, f"/proc/self/fd/{w}", os.O_WRONLY, 0)])
