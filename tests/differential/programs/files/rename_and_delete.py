import shutil
from pathlib import Path
Path("a/b").mkdir(parents=True)
Path("a/b/x.txt").write_text("x")
shutil.copytree("a", "copy")
Path("a/b/x.txt").rename("moved.txt")
shutil.rmtree("a")
print(sorted(str(p) for p in Path(".").rglob("*.txt")), Path("a").exists())
