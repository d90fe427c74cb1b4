values = [1, 2, 3]
def drop():
    global values
    del values
drop()
try:
    values
except NameError as e:
    return str(e)
