from dataclasses import dataclass
@dataclass
class Bad:
    tags: list = []
