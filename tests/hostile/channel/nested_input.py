# Forges inputs that are nested too deep, have names twice, or are JSON that parsers read differently.
# tools: ask
for text in ('{"x":' * 9000 + "1" + "}" * 9000, '{"x":1,"x":2}', '{"x":1e999}', '{"x":"\\ud800"}', '{"x":-0}', '{"\\u0000":1}', '{"__proto__":{"x":1}}'):
    send(frame("C", '[{"n":1,"tool":"ask","input":%s}]' % text), 4)
    time.sleep(0.05)
