# Makes objects that come back to life when they are collected, call tools, and hang at the end.
# tools: ask
# timeout: 1500
kept = []
class Undead:
    def __del__(self):
        kept.append(self)
        attempt(lambda: ask().send(None))
        Undead()
Undead()
await ask()
del kept
