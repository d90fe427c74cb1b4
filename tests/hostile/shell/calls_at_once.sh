# Calls a hundred tools at once and waits for none.
# tools: ask
# timeout: 4000
for i in $(seq 100); do ask "{\"n\":$i}" & done
