from datetime import timedelta, datetime
a = timedelta(days=1, hours=3, minutes=-30)
print(a, a.total_seconds(), a / 2, a // timedelta(hours=1), a % timedelta(hours=4), -a, abs(-a), repr(a))
print(datetime.min, datetime.max.year, str(timedelta(milliseconds=1.5)), divmod(a, timedelta(hours=2)))
