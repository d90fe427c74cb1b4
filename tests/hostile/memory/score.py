# Tries to become the last process to be killed when memory runs out, or to make process 1 the first.
for path, value in (("/proc/self/oom_score_adj", "-1000"), ("/proc/self/oom_score_adj", "0"), ("/proc/1/oom_score_adj", "1000"), ("/proc/self/oom_adj", "-17")):
    if written(path, value) and path != "/proc/self/oom_adj":
        if "/1/" in path or int(open(path).read()) < 0:
            breach(f"{value} written to {path}")
