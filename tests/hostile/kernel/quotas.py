# Asks for and sets quotas.
for number, arguments in ((179, (0x800007, b"/dev/vda", 0, bytes(128))), (443, (os.open("/", os.O_RDONLY), 0x800007, 0, bytes(128)))):
    if syscall(number, *arguments) >= 0:
        breach(f"call {number} was done")
