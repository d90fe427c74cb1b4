# Looks whether another program's changes of the libraries are seen here.
import math
if math.pi != 3.141592653589793 or json.loads("[1]") != [1]:
    breach("sees what another program has changed")
