n = len(os.listdir("."))
"many" if n > 100 else None
