class Stop(BaseException): pass
try:
    raise Stop("halt")
except Exception:
    print("not here")
