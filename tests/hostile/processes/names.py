# Takes misleading names for its processes: that of the server, brackets, line ends, spaces.
for name in (b"fermata", b"(a) S 1 1", b"\n\n0::/\n", b"x) Z 1", b"\xff\xfe", b"kworker/0:1"):
    if attempt(os.fork) == 0:
        _LIBC.prctl(15, name, 0, 0, 0)
        time.sleep(30)
_LIBC.prctl(15, b"b) Z 0 0", 0, 0, 0)
