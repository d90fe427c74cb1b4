import matplotlib.pyplot as plt
plt.bar(["a", "b"], [1, 2])
print(plt.get_fignums())
