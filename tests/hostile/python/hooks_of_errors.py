# Replaces the hooks for errors, warnings, threads and unraisable ones by endless loops.
# timeout: 1500
import warnings
def hook(*_, **__):
    while True:
        pass
sys.excepthook = sys.unraisablehook = threading.excepthook = warnings.showwarning = sys.displayhook = hook
warnings.simplefilter("error")
raise ValueError
