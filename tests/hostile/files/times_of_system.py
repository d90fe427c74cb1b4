# Sets the times of files that all sandboxes share to now, which takes only the right to write.
# sandbox: process
for path in ("/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random", "/etc/passwd", "/usr/bin/env", "/opt/fermata/__main__.py", "/"):
    if attempt(lambda: os.utime(path) or True) and os.stat(path).st_uid != os.getuid():
        breach(f"set the times of {path}")
