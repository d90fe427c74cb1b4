# Takes memory that nobody else can read or reclaim (memfd_secret).
fd = syscall(447, 0)
if fd >= 0:
    breach("has secret memory")
