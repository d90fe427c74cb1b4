# A child changes files while the program waits for a tool.
# tools: ask
# pause: 700
spawn(lambda: [attempt(lambda: open("/mnt/data/counter", "w").write(str(time.monotonic()))) for _ in iter(int, 1)])
time.sleep(0.1)
begin = time.monotonic()
await ask()
end, last = time.monotonic(), content("/mnt/data/counter")
print(bool(last))
os.kill(-1, 9)
