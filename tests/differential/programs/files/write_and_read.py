from pathlib import Path
out = Path("report")
out.mkdir()
for n in range(3):
    (out / f"part-{n}.txt").write_text(f"part {n}\n" * (n + 1))
print(sorted(p.name for p in out.iterdir()), sum(p.stat().st_size for p in out.rglob("*.txt")))
