# Leaves 20,000 files in 200 directories.
# timeout: 5000
for d in range(200):
    os.mkdir(f"d{d}")
    for f in range(100):
        os.close(os.open(f"d{d}/f{f}", os.O_CREAT | os.O_WRONLY))
