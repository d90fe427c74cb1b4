# Reads how the machine was started, how it is built and which kernel options it has.
# sandbox: process
for path in ("/proc/cmdline", "/proc/config.gz", "/proc/partitions", "/proc/diskstats", "/proc/interrupts", "/proc/softirqs", "/proc/modules", "/proc/iomem", "/proc/ioports", "/proc/dma", "/proc/mtrr", "/proc/swaps", "/proc/slabinfo",
             "/proc/vmallocinfo", "/proc/zoneinfo", "/proc/buddyinfo", "/proc/pagetypeinfo", "/proc/timer_list", "/proc/sched_debug", "/proc/keys", "/proc/key-users", "/proc/locks", "/proc/consoles", "/proc/schedstat", "/proc/bootconfig"):
    if content(path):
        breach(f"read {path}")
