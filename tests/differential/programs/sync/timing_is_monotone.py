import time
a = time.perf_counter()
time.sleep(0.02)
b = time.perf_counter()
print(0.015 < b - a < 5, time.monotonic() > 0, time.strftime("%Y", time.gmtime(0)), time.tzname[0], time.localtime(0).tm_hour)
