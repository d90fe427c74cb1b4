data = "naïve 東京".encode("utf-8")
try:
    data.decode("ascii")
except UnicodeDecodeError as e:
    print(e)
print(data.decode("ascii", "replace"), data.decode("latin-1")[:6], "é".encode("ascii", "xmlcharrefreplace"))
open("latin.txt", "w", encoding="cp1252").write("Grüße €")
print(open("latin.txt", "rb").read(), open("latin.txt", encoding="utf-8", errors="ignore").read())
