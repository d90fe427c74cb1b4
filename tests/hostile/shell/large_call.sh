# Calls with a megabyte, and with a megabyte behind the name.
# tools: ask
text=$(head -c 1000000 /dev/zero | tr '\0' x)
ask "{\"x\":\"$text\"}" | head -c 100
