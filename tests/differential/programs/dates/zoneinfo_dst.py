from datetime import datetime, timedelta
from zoneinfo import ZoneInfo
berlin = ZoneInfo("Europe/Berlin")
before = datetime(2025, 3, 30, 1, 30, tzinfo=berlin)
after = before + timedelta(hours=2)
print(before.utcoffset(), after.utcoffset(), after - before, (after.astimezone(ZoneInfo("UTC")) - before.astimezone(ZoneInfo("UTC"))))
print(datetime(2025, 10, 26, 2, 30, fold=1, tzinfo=berlin).tzname(), before.astimezone(ZoneInfo("Asia/Tokyo")).isoformat())
