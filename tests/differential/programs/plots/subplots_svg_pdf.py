import matplotlib.pyplot as plt
fig, axes = plt.subplots(1, 2, figsize=(5, 2))
axes[0].hist([1, 1, 2, 3], bins=3); axes[1].scatter([1, 2], [2, 1])
fig.savefig("two.png")
plt.close(fig)
print(len(axes), axes[0].get_ylim()[1] > 2, type(fig.canvas).__name__)
