# Calculates for hours in one step of the interpreter, which no handler interrupts.
# timeout: 1000
import re
if os.fork() == 0:
    re.match(r"(a+)+$", "a" * 50 + "b")
9**9**9
