from datetime import date
d = date(2025, 1, 31)
for month in (2, 3):
    try:
        print(d.replace(month=month))
    except ValueError as e:
        print(month, e)
print(d.replace(month=4))
