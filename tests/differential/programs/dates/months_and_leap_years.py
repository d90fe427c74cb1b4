import calendar
from datetime import date, timedelta

def add_month(d):
    year, month = divmod(d.year * 12 + d.month, 12)
    return date(year, month + 1, min(d.day, calendar.monthrange(year, month + 1)[1]))

d = date(2024, 1, 31)
for _ in range(3):
    d = add_month(d)
    print(d.isoformat(), d.strftime("%a %d %b %Y"), d.isocalendar().week)
print((date(2025, 3, 1) - date(2024, 3, 1)).days, date(2024, 2, 28) + timedelta(days=1))
