import unicodedata
words = ["café", "cafe\u0301", "Straße", "İstanbul", "ﬁle", "東京"]
for w in words:
    n = unicodedata.normalize("NFKC", w)
    print(ascii(w), len(w), len(n), n.casefold(), w.encode("utf-8")[:6])
print(len(set(unicodedata.normalize("NFC", w) for w in words)), "🇨🇭👩‍👩‍👧"[::1])
