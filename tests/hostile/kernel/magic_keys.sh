# Uses the files that command the kernel.
for path in /proc/sysrq-trigger /proc/sys/vm/drop_caches /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/kernel/panic /sys/kernel/uevent_helper /sys/power/state; do
    if (echo c >"$path") 2>/dev/null; then breach "wrote to $path"; fi
done
echo done
