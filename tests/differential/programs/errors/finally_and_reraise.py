def work():
    try:
        raise OSError(28, "No space left on device", "out.bin")
    except OSError as e:
        print("caught", e.errno, e.filename)
        raise
    finally:
        print("cleanup")
work()
