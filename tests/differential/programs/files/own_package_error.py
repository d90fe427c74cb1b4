from pathlib import Path
Path("calc").mkdir()
Path("calc/__init__.py").write_text("from .core import ratio\n")
Path("calc/core.py").write_text("def ratio(a, b):\n    return a / b\n")
from calc import ratio
print(ratio(1, 4))
print(ratio(1, 0))
