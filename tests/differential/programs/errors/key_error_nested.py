data = {"user": {"name": "x"}}
def city(d):
    return d["user"]["address"]["city"]
print(city(data))
