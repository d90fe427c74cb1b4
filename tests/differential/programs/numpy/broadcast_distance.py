import numpy as np
p = np.array([[0, 0], [3, 4], [6, 8]], dtype=float)
d = np.sqrt(((p[:, None] - p[None]) ** 2).sum(-1))
print(d, np.unravel_index(d.argmax(), d.shape))
