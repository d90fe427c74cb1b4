import gzip, bz2, lzma, io
text = ("row,1\n" * 500).encode()
for m in (gzip, bz2, lzma):
    packed = m.compress(text)
    print(m.__name__, len(packed) < 200, m.decompress(packed) == text)
