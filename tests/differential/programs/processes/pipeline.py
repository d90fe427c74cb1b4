import subprocess
p1 = subprocess.Popen(["printf", "b\\na\\nb\\n"], stdout=subprocess.PIPE)
p2 = subprocess.Popen(["sort", "-u"], stdin=p1.stdout, stdout=subprocess.PIPE, text=True)
p1.stdout.close()
print(p2.communicate()[0].split(), p1.wait(), p2.returncode)
