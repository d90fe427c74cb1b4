import os, sys
print(os.environ["HOME"], os.getcwd(), os.environ.get("SECRET_KEY"), sys.argv[1:])
os.environ["MODE"] = "test"
print(os.popen("echo $MODE").read().strip(), os.path.expanduser("~"), os.environ.get("LANG"))
