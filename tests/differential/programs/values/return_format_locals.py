name, age = "Ada", 36
return "{name} is {age}".format(**locals())
