"""Doc first."""
# a comment
from __future__ import annotations, generator_stop
class Node:
    next: Node | None = None
    def clone(self, other: Missing) -> Node:
        return Node()
return [Node.__annotations__, type(Node().clone(1)).__name__]
