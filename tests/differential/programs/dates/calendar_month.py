import calendar
print(calendar.month(2025, 2))
print(calendar.TextCalendar(6).formatweek(calendar.Calendar(6).monthdays2calendar(2025, 2)[0], 2), calendar.isleap(2100), calendar.day_name[0])
