import shlex, shutil
print(shlex.split("cp 'a b' c\\ d"), shlex.join(["echo", "a b", "$x"]), shutil.which("sh") is not None, shutil.which("nope"))
