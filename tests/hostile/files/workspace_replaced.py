# Takes the workspace away, or puts something else in its place.
for action in (lambda: os.rename("/mnt/data", "/mnt/x"), lambda: os.rmdir("/mnt/data"), lambda: os.symlink("/etc", "/mnt/data"), lambda: os.chmod("/mnt/data", 0), lambda: os.chown("/mnt/data", 0, 0)):
    attempt(action)
