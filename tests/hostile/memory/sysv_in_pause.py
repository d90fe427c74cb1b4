# Pauses with shared memory of System V that is marked for removal and still attached.
# tools: ask
identity = syscall(29, 4711, 1 << 20, 0o1666)
syscall(30, identity, 0, 0)
syscall(31, identity, 0, 0)
await ask()
