import subprocess
p = subprocess.Popen("yes | head -n 3", shell=True, stdout=subprocess.PIPE, text=True)
print(p.stdout.read().split(), p.wait())
r = subprocess.run(["bash", "-c", "set -o pipefail; false | cat"]); print(r.returncode)
