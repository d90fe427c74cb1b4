import io
raw = io.BytesIO()
t = io.TextIOWrapper(raw, encoding="utf-16-le", newline="")
t.write("hé\n"); t.flush()
print(raw.getvalue(), io.StringIO("a\r\nb").readlines(), io.BufferedReader(io.BytesIO(b"xyz")).peek(1)[:1])
