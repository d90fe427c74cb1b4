# Leaves a thousand names of one file, and tries to make names of files of the system.
with open("file", "w") as file:
    file.write("x" * 1000)
for i in range(1000):
    os.link("file", f"link{i}")
for path in ("/etc/passwd", "/usr/bin/env", "/dev/null", "/proc/self/status", "/opt/fermata/__main__.py"):
    if attempt(os.link, path, "/tmp/name") is None and os.path.exists("/tmp/name"):
        breach(f"made a second name of {path}")
