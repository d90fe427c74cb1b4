import numpy as np
x = np.array([2.0, 4, 4, 4, 5, 5, 7, 9])
return [x.std(), x.var(ddof=1).round(4), np.percentile(x, 90), np.prod(x[:3]), np.ptp(x), int(np.argmax(x)), x.mean() > 4]
