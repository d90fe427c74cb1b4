from pathlib import Path
here = Path(__file__).resolve().parent
(here / "out.txt").write_text("x")
print(here == Path.cwd(), Path("out.txt").exists())
