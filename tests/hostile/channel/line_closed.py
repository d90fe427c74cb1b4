# Closes the line to the server in the middle of two calls.
# tools: ask
await ask(a=1)
attempt(os.close, 4)
print(await ask(b=2))
