import stat
from pathlib import Path
p = Path("script.sh")
p.write_text("#!/bin/sh\necho ran\n")
p.chmod(0o755)
print(stat.filemode(p.stat().st_mode), os.access(p, os.X_OK), os.popen("./script.sh").read().strip())
try:
    open("/etc/passwd", "r").readline()
    print("readable")
except OSError as e:
    print(type(e).__name__)
