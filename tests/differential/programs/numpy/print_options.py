import numpy as np
np.set_printoptions(precision=2, suppress=True, threshold=5)
print(np.linspace(0, 1, 4), np.arange(100), np.array([1e10, 1e-10]))
