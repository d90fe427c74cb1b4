from dataclasses import dataclass, field, asdict, replace

@dataclass(order=True)
class Item:
    sort_key: tuple = field(init=False, repr=False)
    name: str
    price: float
    tags: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.sort_key = (self.price, self.name)

items = [Item("pen", 1.5), Item("book", 12, ["paper"]), Item("cup", 1.5)]
print(sorted(items))
print(asdict(items[1]), replace(items[0], price=2))
