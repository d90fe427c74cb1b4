from textwrap import dedent, fill, indent
text = open("notes.txt", encoding="utf-8").read()
todos = [line.removeprefix("TODO: ") for line in text.splitlines() if line.startswith("TODO")]
print(dedent(f"""
    Report
    ======
    {len(todos)} tasks, {len(text)} characters, {len(text.encode())} bytes
""").strip())
print(indent(fill(" / ".join(todos), 40), "> "))
