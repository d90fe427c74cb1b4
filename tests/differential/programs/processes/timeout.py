import subprocess
try:
    subprocess.run(["sleep", "10"], timeout=0.1)
except subprocess.TimeoutExpired as e:
    print(type(e).__name__, e.cmd)
