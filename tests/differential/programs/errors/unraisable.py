class Bad:
    def __del__(self):
        raise ValueError("in del")
b = Bad()
del b
print("goes on")
