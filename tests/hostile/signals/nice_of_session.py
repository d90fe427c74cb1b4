# Slows down the group of sessions that the scheduler makes by itself (autogroup).
# tools: ask
own, first = content("/proc/self/autogroup"), content("/proc/1/autogroup")
if own and written("/proc/self/autogroup", "19") and b"nice 19" in (content("/proc/1/autogroup") or b""):
    breach(f"slowed process 1, which is in {first}")
await ask()
