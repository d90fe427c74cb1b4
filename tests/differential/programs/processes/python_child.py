import subprocess, sys
out = subprocess.run([sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", "a b", "é"], capture_output=True, text=True)
print(out.stdout.strip(), out.returncode)
