# Makes children that end with strange codes, and ends with an object.
for code in (None, True, -1, 256, 1 << 40, "text", b"x", object(), 1.5, [], SystemExit(3)):
    pid = os.fork()
    if pid == 0:
        try:
            sys.exit(code)
        except SystemExit:
            os._exit(0)
    os.waitpid(pid, 0)
raise SystemExit(SystemExit(SystemExit("x" * 1_000_000)))
