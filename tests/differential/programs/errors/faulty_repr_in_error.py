class X:
    def __repr__(self): return "<X å>"
raise KeyError(X())
