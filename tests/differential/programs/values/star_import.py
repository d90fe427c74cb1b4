from math import *
r = sqrt(16) + floor(pi)
return r
