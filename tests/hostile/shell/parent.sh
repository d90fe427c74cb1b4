# Kills, stops and looks into the process that runs the shell.
# tools: ask
# timeout: 1500
cat "/proc/$PPID/environ" "/proc/$PPID/cmdline" 2>/dev/null | tr '\0' '\n' | grep -i 'FERMATA_' && breach "read settings of the server"
kill -STOP "$PPID"
ask '{}'
kill -CONT "$PPID"
kill -KILL "$PPID"
