def check(v):
    if v < 0:
        raise ValueError(f"negative: {v}")
    return v
total = sum(check(v) for v in (1, -2))
