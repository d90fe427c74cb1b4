with open("notes.txt", encoding="utf-8") as f:
    for n, line in enumerate(f, 1):
        if "TODO" in line:
            return n, line.strip()
