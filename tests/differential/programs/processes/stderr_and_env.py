import os, subprocess
r = subprocess.run('echo "$GREETING" >&2; pwd -P | wc -l', shell=True, capture_output=True, text=True, env={**os.environ, "GREETING": "hé"}, cwd="/")
print(repr(r.stderr), r.stdout.strip())
