import matplotlib.pyplot as plt
names = ["Ada", "Björn", "Chen"]
fig, ax = plt.subplots(figsize=(4, 3))
ax.bar(names, [3, 1, 2])
ax.set_title("Orders")
fig.tight_layout()
fig.savefig("orders.png", dpi=80)
plt.close(fig)
print(os.path.exists("orders.png"))
