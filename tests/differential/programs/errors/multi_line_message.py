raise RuntimeError("first line\nsecond line\n  third")
