import sys
try:
    name = input("Name? ")
except EOFError as e:
    print("\nno input:", e)
print(repr(sys.stdin.read()), sys.stdin.isatty())
