def parse(s):
    try:
        return float(s)
    except ValueError:
        raise SystemError(f"cannot parse {s}") from None
parse("abc")
