import subprocess
r = subprocess.run(["grep", "-c", "ERROR", "server.log"], capture_output=True, text=True)
print(r.stdout.strip(), subprocess.getoutput("wc -l < notes.txt").strip(), subprocess.getstatusoutput("exit 9"))
