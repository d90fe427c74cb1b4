import threading
errors = []
threading.excepthook = lambda args: errors.append((args.exc_type.__name__, str(args.exc_value)))
t = threading.Thread(target=lambda: [][1]); t.start(); t.join()
print(errors)
