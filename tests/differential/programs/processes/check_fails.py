import subprocess
print("start")
subprocess.run(["sh", "-c", "echo problem >&2; exit 4"], check=True)
