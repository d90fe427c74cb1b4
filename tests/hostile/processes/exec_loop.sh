# Executes itself for ever.
# timeout: 1000
exec /bin/sh -c 'exec /bin/sh -c "$0" "$0"' 'exec /bin/sh -c "$0" "$0"'
