# Reports that it has ended, and then calls a tool.
# tools: ask
send(frame("D", json.dumps({"exit": 0, "error": "", "memory": False})), 3)
await ask()
