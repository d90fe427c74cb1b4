# Exchanges its two channels for one another.
# tools: ask
# timeout: 1500
spare = os.dup(3)
attempt(os.dup2, 4, 3)
attempt(os.dup2, spare, 4)
print(await ask())
