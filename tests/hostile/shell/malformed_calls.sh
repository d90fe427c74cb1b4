# Calls with what is no JSON, too many arguments, none, and bytes that are no text.
# tools: ask
ask; ask '{'; ask '[1]' ; ask '{"x":1}' '{"y":2}'; ask "$(printf '{"x":"\xff\xfe"}')"; ask '{"x":NaN}'; ask "$(printf '{"a":1}\n{"b":2}')"
