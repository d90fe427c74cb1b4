from datetime import date, timedelta
holidays = {date(2025, 4, 18), date(2025, 4, 21)}
def workdays(start, end):
    d = start
    while d <= end:
        if d.weekday() < 5 and d not in holidays:
            yield d
        d += timedelta(days=1)
days = list(workdays(date(2025, 4, 14), date(2025, 4, 25)))
print(len(days), days[-1], [f"{d:%a}" for d in days[:5]])
