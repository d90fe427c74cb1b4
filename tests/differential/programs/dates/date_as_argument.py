from datetime import date, datetime
from decimal import Decimal
from uuid import UUID
from pathlib import Path
got = await echo({"d": date(2025, 1, 2), "t": datetime(2025, 1, 2, 3, 4), "n": Decimal("2.50"), "u": UUID(int=5), "p": Path("/a/b"), "nan": float("nan")})
print(got)
