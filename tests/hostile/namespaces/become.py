# Becomes every other user and group.
for identity in (0, 1, 65534, 100000, 4294967294):
    for function in (os.setuid, os.setgid, lambda i: os.setresuid(i, i, i), lambda i: os.setresgid(i, i, i), lambda i: os.setgroups([i])):
        attempt(function, identity)
    for number in (122, 123):
        syscall(number, identity)
status = open("/proc/self/status").read()
if any(line.split()[1:] != ["1000"] * 4 for line in status.splitlines() if line.startswith(("Uid", "Gid"))):
    breach("became somebody else")
