# Reads in its own lists of mounts where the server keeps its state.
for name in ("mountinfo", "mounts", "mountstats"):
    text = content(f"/proc/self/{name}") or b""
    for word in (b"/state/", b"fermata-tests", b"/sandboxes/", b"/root/", b"/home/"):
        if word in text:
            breach(f"{name} has {word.decode()}")
