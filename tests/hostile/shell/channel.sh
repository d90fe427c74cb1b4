# Writes to every descriptor that it finds, and reads from them.
# tools: ask
# timeout: 1500
for fd in /proc/$$/fd/* /proc/$PPID/fd/*; do
    (printf '\0\0\0\2C[]' >"$fd") 2>/dev/null
done
timeout 0.5 cat <&3 2>/dev/null
ask '{}'
