os.makedirs("work")
os.chdir("work")
open("inner.txt", "w").write("in")
print(os.path.basename(os.getcwd()), os.path.exists("../work/inner.txt"))
