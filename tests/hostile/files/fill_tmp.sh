# Fills /tmp and /dev/shm from the shell.
dd if=/dev/zero of=/tmp/full bs=1M count=100000 2>/dev/null
dd if=/dev/zero of=/dev/shm/full bs=1M count=100000 2>/dev/null
echo done
