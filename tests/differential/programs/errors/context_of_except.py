try:
    {}["first"]
except KeyError:
    [][3]
