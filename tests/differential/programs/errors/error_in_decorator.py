def register(name):
    raise TypeError(f"{name} is taken")
@register("job")
def job():
    pass
