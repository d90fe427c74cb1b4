# Changes rights, owners, times and attributes of files that all sandboxes share.
for path in ("/etc/passwd", "/usr/bin/env", "/opt/fermata/__main__.py", os.__file__, "/dev/null", "/dev/zero", "/etc", "/"):
    for name, function, arguments in (("chmod", os.chmod, (0o777,)), ("chown", os.chown, (1000, 1000)), ("utime", os.utime, ((1, 1),)), ("setxattr", os.setxattr, ("user.x", b"1")), ("truncate", os.truncate, (0,))):
        try:
            function(path, *arguments)
            breach(f"{name} of {path}")
        except OSError:
            pass
