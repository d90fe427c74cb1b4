# Makes directories in one another far beyond the longest path.
for _ in range(5000):
    try:
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    except OSError:
        break
attempt(open, "bottom", "w")
