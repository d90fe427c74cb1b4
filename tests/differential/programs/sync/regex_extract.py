import re
text = open("notes.txt", encoding="utf-8").read()
print(re.findall(r"[\w.]+@[\w.]+\.\w+", text))
print(re.sub(r"\d(?=\d{3})", lambda m: m[0] + "_", "1234567"))
m = re.search(r"(?P<y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)", text)
print(m.groupdict(), m.span())
print(re.split(r"[,;]\s*", "a, b;c,  d"), re.fullmatch("a+", "aab"))
