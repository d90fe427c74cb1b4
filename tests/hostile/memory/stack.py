# Overflows the C stack, in the first thread and in another.
import re
sys.setrecursionlimit(1 << 30)
threading.stack_size(256 << 20)
thread = attempt(threading.Thread, target=lambda: None)
attempt(thread.start)
class Deep:
    def __getattr__(self, name):
        return getattr(self, name)
Deep().x
