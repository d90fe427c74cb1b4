# Fills the workspace to the last byte and pauses with it full.
# tools: ask
with open("/mnt/data/full", "wb", 0) as file:
    while attempt(file.write, bytes(1 << 20)):
        pass
if os.stat("/mnt/data/full").st_size > 1 << 30:
    breach("wrote more than a gigabyte")
await ask()
