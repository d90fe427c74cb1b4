n = 0b1011_0110
print(n.bit_count(), n.bit_length(), n & -n, ~n, n << 3, bin(n)[2:].zfill(12), divmod(-7, 3), -7 // 2, pow(3, -1, 11))
print(2 ** 200 % 97, int("ff", 16), int("z", 36), round(2.5), round(-3.5), round(1234, -2), float("1e-7"))
