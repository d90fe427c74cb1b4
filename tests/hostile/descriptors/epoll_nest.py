# Nests epoll sets as deep and as wide as the kernel lets it.
sets = [select.epoll()]
for _ in range(400):
    outer = attempt(select.epoll)
    if outer is None:
        break
    for inner in sets[-30:]:
        attempt(outer.register, inner.fileno())
    sets.append(outer)
attempt(sets[0].register, sets[-1].fileno())
