try:
    import no_such_module
    HAVE = True
except ImportError as e:
    print("fallback:", e)
    HAVE = False
print(HAVE)
