# Raises an error whose text ends the process, hangs, or raises another one.
# timeout: 1500
class Evil(Exception):
    def __str__(self):
        raise SystemExit(3)
    def __repr__(self):
        while True:
            pass
    __cause__ = property(lambda self: self)
raise Evil()
