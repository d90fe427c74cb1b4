class Resource:
    def __init__(self, name): self.name = name
    def __del__(self): print("free", self.name)
first = Resource("first")
second = Resource("second")
second = None
holder = [Resource("in a list")]
print("end of program")
