# Replaces its output by objects that raise, recurse, block and lie.
# timeout: 1000
class Evil:
    encoding = property(lambda self: 1 / 0)
    def write(self, text):
        return self.write(text)
    def flush(self):
        time.sleep(30)
    def __getattr__(self, name):
        raise SystemExit(name)
sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = Evil()
raise ValueError("x")
