import sys
print("step 1", file=sys.stderr)
sys.stderr.write("step 2\n")
raise LookupError("stop at step 3")
