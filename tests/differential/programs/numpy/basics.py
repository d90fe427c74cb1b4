import numpy as np
a = np.arange(12).reshape(3, 4)
print(a.sum(axis=0), a[:, 1:3].T, a[a % 5 == 0], a.dtype.kind, np.where(a > 6, a, -1)[1])
