import numpy as np
rng = np.random.default_rng(0)
print(rng.integers(0, 10, 5), rng.normal(size=2).round(4), rng.permutation(4))
np.random.seed(1); print(np.random.rand(2).round(4))
