# Children that die by every signal there is, with core dumps if they get any.
attempt(resource.setrlimit, resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
for number in range(1, 65):
    pid = attempt(spawn, lambda: (attempt(signal.signal, number, signal.SIG_DFL), os.kill(os.getpid(), number)))
    if pid:
        time.sleep(0.002)
        attempt(os.kill, pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if os.WCOREDUMP(status):
            breach(f"signal {number} made a core dump")
