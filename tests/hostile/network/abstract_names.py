# Takes abstract names that others may want, and connects to those of others.
# tools: ask
kept = []
for name in ("\0/tmp/.X11-unix/X0", "\0fermata", "\0/com/ubuntu/upstart", "\0/containerd-shim/x.sock", "\0dbus"):
    s = socket.socket(socket.AF_UNIX)
    if s.connect_ex(name) == 0:
        breach(f"connected to {name[1:]}")
    attempt(s.bind, name)
    kept.append(s)
await ask()
