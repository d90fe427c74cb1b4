# Leaves files and directories without any rights.
os.mkdir("closed")
for path in ("a", "closed/b"):
    with open(path, "w") as file:
        file.write("x")
    os.chmod(path, 0)
for mode in (0o6777, 0o4755, 0o1777):
    with open(f"s{mode}", "w") as file:
        os.fchmod(file.fileno(), mode)
os.chmod("closed", 0)
