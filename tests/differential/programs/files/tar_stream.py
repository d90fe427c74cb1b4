import io, tarfile
buffer = io.BytesIO()
with tarfile.open(fileobj=buffer, mode="w:gz") as t:
    for name, text in (("one.txt", b"1"), ("two.txt", b"22")):
        info = tarfile.TarInfo(name); info.size = len(text); info.mtime = 0
        t.addfile(info, io.BytesIO(text))
buffer.seek(0)
with tarfile.open(fileobj=buffer) as t:
    t.extractall("out", filter="data")
print(sorted(os.listdir("out")))
