import subprocess
try:
    subprocess.run(["no-such-command"])
except FileNotFoundError as e:
    print(e.errno, e.filename)
print(subprocess.run("no-such-command", shell=True, stderr=subprocess.DEVNULL).returncode)
