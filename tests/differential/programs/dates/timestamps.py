from datetime import datetime, timezone, timedelta
import time
t = datetime(2001, 9, 9, 1, 46, 40, tzinfo=timezone.utc)
print(t.timestamp(), datetime.fromtimestamp(0, timezone.utc), datetime.fromtimestamp(86400.5), time.mktime((1970, 1, 2, 0, 0, 0, 0, 0, 0)))
print(t.astimezone(timezone(timedelta(hours=-5), "EST")), time.strftime("%d.%m.%Y", time.gmtime(1e9)), time.strptime("5 Jan 24", "%d %b %y").tm_yday)
