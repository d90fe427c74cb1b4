# Opens what it has mapped by /proc/self/map_files, for writing.
for name in attempt(os.listdir, "/proc/self/map_files") or ():
    for flags in (os.O_RDWR, os.O_WRONLY | os.O_TRUNC):
        fd = attempt(os.open, f"/proc/self/map_files/{name}", flags)
        if fd is not None and "progress" not in os.readlink(f"/proc/self/fd/{fd}"):
            breach(f"opened {os.readlink(f'/proc/self/fd/{fd}')} for writing")
