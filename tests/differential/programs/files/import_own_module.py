from pathlib import Path
Path("helpers.py").write_text("FACTOR = 3\n\ndef triple(x):\n    return x * FACTOR\n")
import helpers
print(helpers.triple(14), Path(helpers.__file__).name)
