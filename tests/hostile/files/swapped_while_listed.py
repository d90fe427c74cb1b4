# Exchanges a file for a link and a directory for a link, again and again, until it is killed.
# timeout: 1000
os.mkdir("d")
open("d/f", "w").close()
os.symlink("/etc", "link")
while True:
    syscall(316, -100, b"d", -100, b"link", 2)
