# Prints to stderr without end.
yes >&2
