import sys
data = [1, 2, 3]
if len(data) != 4:
    sys.exit(f"expected 4 rows, found {len(data)}")
