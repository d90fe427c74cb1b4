import time, locale
t = time.strptime("2025-03-30 12:00", "%Y-%m-%d %H:%M")
return [t.tm_wday, time.strftime("%A", t), time.asctime(t)]
