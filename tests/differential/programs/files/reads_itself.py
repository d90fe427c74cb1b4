from pathlib import Path
me = Path(__file__)
print(me.name, me.parent == Path.cwd(), me.suffix)
print(len(me.read_text().splitlines()), "lines")
