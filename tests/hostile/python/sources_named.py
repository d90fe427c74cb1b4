# Has tracebacks show the lines of files by pretending that code comes from there.
for path in ("/etc/shadow", "/proc/1/environ", "/proc/self/environ", "/opt/fermata/fermata/zygote.py"):
    attempt(exec, compile("1/0", path, "exec"))
exec(compile("\n" * 3 + "1/0", "/proc/self/maps", "exec"))
