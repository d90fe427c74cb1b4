from __future__ import annotations
from typing import Optional

def lookup(name: Optional[Missing]) -> str | None:
    return name

price: float = 21
return {"celsius": price, "annotations": lookup.__annotations__}
