from decimal import Decimal, ROUND_HALF_UP, getcontext
getcontext().prec = 28
lines = [("pen", 3, "1.05"), ("book", 1, "12.995"), ("cup", 2, "4.335")]
net = sum(Decimal(p) * n for _, n, p in lines)
tax = (net * Decimal("0.19")).quantize(Decimal("0.01"), ROUND_HALF_UP)
print(net, tax, net + tax, 0.1 + 0.2, Decimal("0.1") + Decimal("0.2"))
