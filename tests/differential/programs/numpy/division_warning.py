import numpy as np
a = np.array([1.0, 0.0, -1.0])
print(a / 0, np.log(a))
