import numpy as np
data = np.array([[1.0, 2.0], [3.0, 5.0]])
return {"mean": data.mean(), "std": data.std().round(4), "var": float(data.var()), "max": data.max()}
