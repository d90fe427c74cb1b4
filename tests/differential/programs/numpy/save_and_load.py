import numpy as np
np.savetxt("m.csv", np.eye(2), delimiter=",", fmt="%.1f")
np.save("a.npy", np.arange(3))
print(np.load("a.npy"), open("m.csv").read().split(), np.genfromtxt("m.csv", delimiter=",").shape)
