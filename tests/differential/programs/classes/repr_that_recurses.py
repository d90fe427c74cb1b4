class Node:
    def __init__(self, v): self.v, self.next = v, None
    def __repr__(self): return f"Node({self.v}, {self.next})"
a, b = Node(1), Node(2); a.next = b
print(a)
x = [1]; x.append(x); print(x, {"d": x})
