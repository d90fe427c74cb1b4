def sieve(n):
    flags = bytearray([1]) * (n + 1)
    flags[0:2] = b"\0\0"
    for i in range(2, int(n ** 0.5) + 1):
        if flags[i]:
            flags[i * i :: i] = bytes(len(flags[i * i :: i]))
    return [i for i, f in enumerate(flags) if f]

primes = sieve(10_000)
print(len(primes), primes[:10], primes[-1], sum(primes))
