# Writes to every file of process 1.
for folder in ("/proc/1", "/proc/1/attr", "/proc/1/task/1"):
    for name in attempt(os.listdir, folder) or ():
        for text in ("0", "1", "-17", "x"):
            if os.path.isfile(f"{folder}/{name}") and written(f"{folder}/{name}", text):
                breach(f"wrote {text} to {folder}/{name}")
