import subprocess, sys
if len(sys.argv) == 1:
    r = subprocess.run([sys.executable, __file__, "again"], capture_output=True, text=True)
    print("parent saw:", r.stdout.strip(), r.returncode)
else:
    print("second run", sys.argv[1])
