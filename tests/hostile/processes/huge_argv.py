# Executes a program with as many and as long arguments as the kernel takes.
for argument, count in (("x" * 131_000, 10), ("", 50_000), ("x" * (1 << 20), 2)):
    attempt(subprocess.run, ["/bin/true", *[argument] * count])
