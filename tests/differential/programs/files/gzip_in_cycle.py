import gzip
class Sink:
    def __init__(self):
        self.f = gzip.GzipFile("out.gz", "wb", mtime=0)
        self.me = self
s = Sink()
s.f.write(b"data")
print(type(s.f).__name__)
