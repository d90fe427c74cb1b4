from datetime import datetime, timedelta
t = datetime.fromisoformat(await now())
deadline = t + timedelta(days=2)
print(f"{t:%A %d %B %Y, %H:%M %z}", deadline.date(), (deadline - t).days, t.tzinfo)
