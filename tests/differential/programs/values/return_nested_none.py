return {"a": None, "b": [True, False, None], "c": "", "d": 1.0, "e": -0.0, "f": 10 ** 20, "g": "é😀\u2028"}
