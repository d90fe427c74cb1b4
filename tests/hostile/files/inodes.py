# Uses up the inodes of a writable directory with empty files.
# timeout: 5000
made = 0
try:
    os.mkdir("/tmp/many")
    while made < 200_000:
        os.close(os.open(f"/tmp/many/{made}", os.O_CREAT | os.O_WRONLY))
        made += 1
except OSError:
    pass
if made >= 200_000:
    breach("200,000 files")
