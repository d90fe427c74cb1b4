import numpy as np
t = np.array(["2025-01-31", "2025-03-01"], dtype="datetime64[D]")
print(np.diff(t), t.astype("datetime64[M]"), np.busday_count("2025-01-01", "2025-02-01"))
r = np.array([(1, 2.5)], dtype=[("a", int), ("b", float)]); print(r["b"], r.dtype.names)
