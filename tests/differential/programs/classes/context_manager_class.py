class Transaction:
    def __init__(self): self.log = []
    def __enter__(self):
        self.log.append("begin"); return self
    def __exit__(self, kind, error, tb):
        self.log.append(f"rollback {kind.__name__}" if kind else "commit")
        return kind is KeyError
t = Transaction()
with t: pass
with t: raise KeyError("x")
try:
    with t: raise ValueError
except ValueError: pass
print(t.log)
