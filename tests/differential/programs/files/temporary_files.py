import tempfile
from pathlib import Path
with tempfile.TemporaryDirectory() as d:
    p = Path(d) / "x.bin"
    p.write_bytes(b"abc")
    print(p.exists(), p.stat().st_size)
with tempfile.NamedTemporaryFile("w+", suffix=".csv", delete=True) as f:
    f.write("a,b"); f.seek(0)
    print(f.read(), f.name.endswith(".csv"))
print(p.exists(), os.path.exists(f.name))
