import subprocess, sys
if len(sys.argv) > 1:
    print("child got", sys.argv[1])
else:
    open("child.py", "w").write("import sys\nprint('child got', sys.argv[1:])\nsys.exit(2)\n")
    r = subprocess.run([sys.executable, "child.py", "x"], capture_output=True, text=True)
    print(r.stdout.strip(), r.returncode)
