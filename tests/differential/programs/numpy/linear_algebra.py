import numpy as np
A = np.array([[3.0, 1], [1, 2]]); b = np.array([9.0, 8])
x = np.linalg.solve(A, b)
w, v = np.linalg.eigh(A)
print(x.round(6), np.allclose(A @ x, b), w.round(4), round(np.linalg.det(A), 6))
