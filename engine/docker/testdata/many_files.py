"""Makes files until it may make no more. Prints the error and the number of files, as JSON."""

import errno
import json

made = 0
try:
    while made < 100_000:
        open(f"/mnt/data/{made}", "w").close()
        made += 1
except OSError as error:
    print(json.dumps([errno.errorcode[error.errno], made]))
