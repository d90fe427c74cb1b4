from pathlib import Path
import glob, fnmatch
for name in ("2025-01.csv", "2025-02.csv", "notes.md", "sub/deep.csv"):
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(name)
print(sorted(glob.glob("*.csv")), sorted(glob.glob("**/*.csv", recursive=True)), fnmatch.filter(["a.py", "b.txt"], "*.py"))
