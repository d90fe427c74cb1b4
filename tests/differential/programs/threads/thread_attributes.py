import threading
t = threading.Thread(target=lambda: None, name="w-1", daemon=True)
print(t.name, t.daemon, t.is_alive(), threading.current_thread().name, threading.main_thread() is threading.current_thread())
t.start(); t.join(1); print(t.is_alive())
