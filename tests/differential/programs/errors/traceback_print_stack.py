import traceback
def inner():
    traceback.print_stack(file=sys.stdout)
inner()
