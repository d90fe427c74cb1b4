print("before")
if len("abc") == 3:
    return
print("after")
