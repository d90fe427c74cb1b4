# Recurses until the shell has no stack.
f() { f "$@" "$1"; }
f x
