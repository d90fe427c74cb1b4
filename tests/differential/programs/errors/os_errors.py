for f in (lambda: os.rmdir("nope"), lambda: os.mkdir("."), lambda: open("."), lambda: os.remove("no/pe")):
    try:
        f()
    except OSError as e:
        print(type(e).__name__, e)
