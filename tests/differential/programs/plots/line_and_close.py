import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
plt.plot([1, 2, 3], [2, 4, 1], label="x")
plt.legend(); plt.xlabel("t"); plt.grid(True)
plt.savefig("line.png")
plt.close("all")
print(plt.get_fignums(), os.path.getsize("line.png") > 1000)
