import sys
print("checking")
if not os.path.exists("input.xlsx"):
    print("no input", file=sys.stderr)
    sys.exit(2)
