import sys
def hook(kind, error, tb):
    print(f"hook: {kind.__name__}: {error} at line {tb.tb_lineno}")
sys.excepthook = hook
gone = {}["gone"]
