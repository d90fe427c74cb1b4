# Writes to every file of process 1.
for folder, _, names in os.walk("/proc/1"):
    for name in names:
        for text in ("0", "1", "-17", "x"):
            if attempt(lambda: open(f"{folder}/{name}", "w").write(text)):
                breach(f"wrote {text} to {folder}/{name}")
