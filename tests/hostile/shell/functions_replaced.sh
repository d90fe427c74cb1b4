# Replaces the tool, and what the tool is made of, by functions of its own.
# tools: ask
# timeout: 2000
command() { return 1; }; printf() { :; }; read() { :; }; exec() { :; }; builtin() { :; }
unset PATH IFS
ask '{"x":1}'
unset -f ask
ask '{"x":2}'
