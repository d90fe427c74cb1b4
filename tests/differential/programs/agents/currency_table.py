amounts = {"EUR": 10, "USD": 12.5, "JPY": 1600}
pairs = [(a, b) for a in amounts for b in amounts if a != b]
values = await asyncio.gather(*(convert(amounts[a], a, b) for a, b in pairs))
for (a, b), v in zip(pairs, values):
    print(f"{amounts[a]:>8} {a} = {v:>10.2f} {b}")
