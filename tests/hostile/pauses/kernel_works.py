# Makes the kernel work during the pause: a large copy, a sync, a random read in one call.
# tools: ask
# pause: 700
# timeout: 4000
for _ in range(4):
    threading.Thread(target=lambda: [attempt(os.getrandom, 32 << 20) for _ in range(20)], daemon=True).start()
    threading.Thread(target=os.sync, daemon=True).start()
await ask()
os._exit(0)
