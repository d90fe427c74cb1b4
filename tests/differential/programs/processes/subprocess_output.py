import subprocess
done = subprocess.run(["sort", "-t", ",", "-k", "2"], input="3,c\n1,b\n2,a\n", capture_output=True, text=True, check=True)
print(done.returncode, done.stdout.split())
print(subprocess.run("echo $((6 * 7)); exit 3", shell=True, stdout=subprocess.PIPE).returncode)
