# Fills the temporary directory by here-documents and substitutions.
# timeout: 3000
x=$(head -c 20000000 /dev/zero | tr '\0' y)
cat <<<"$x$x$x$x" | wc -c
echo "${x//y/zzzz}" | wc -c
