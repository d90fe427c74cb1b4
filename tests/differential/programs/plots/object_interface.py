from matplotlib.figure import Figure
fig = Figure(figsize=(2, 2))
ax = fig.subplots(); ax.plot([0, 1], [1, 0]); ax.set_yscale("log")
fig.savefig("object.png", dpi=50)
print(ax.get_yscale(), len(ax.lines))
