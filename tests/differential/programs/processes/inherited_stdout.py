import subprocess, sys
print("before")
subprocess.run(["echo", "from the child"])
subprocess.run([sys.executable, "-c", "import sys; print('err', file=sys.stderr)"])
os.system("echo system")
print("after")
