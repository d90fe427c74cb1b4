# Opens as many descriptors as it may and pauses.
# tools: ask
kept = []
try:
    while len(kept) < 100_000:
        kept.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
if len(kept) > 5000:
    breach(f"{len(kept)} descriptors")
await ask()
