import subprocess, sys
r = subprocess.run([sys.executable, "-c", "x = {}\nx['missing']"], capture_output=True, text=True)
print(r.returncode, r.stderr.strip().splitlines()[-1])
