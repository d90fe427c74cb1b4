# Leaves modules with the names of the library in its directory, for whoever imports next.
# tools: ask
for name in ("traceback", "linecache", "tokenize", "warnings", "codecs", "ast", "asyncio"):
    with open(f"{name}.py", "w") as file:
        file.write("import os; os._exit(9)\n")
    sys.modules.pop(name, None)
sys.path.insert(0, os.getcwd())
print(await ask())
1 / 0
