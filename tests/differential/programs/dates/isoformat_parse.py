from datetime import datetime, date, time
for s in ("2025-03-30", "2025-03-30T01:30:00+01:00", "20250330T0130", "2025-W13-7", "2025-03-30T01:30Z"):
    print(s, datetime.fromisoformat(s))
print(date.fromisocalendar(2025, 1, 1), time.fromisoformat("04:05:06.789"), date.fromordinal(738000))
datetime.fromisoformat("30.03.2025")
