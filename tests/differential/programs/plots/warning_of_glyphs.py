import matplotlib.pyplot as plt
fig, ax = plt.subplots()
ax.set_title("\ue000 private")
fig.savefig("glyph.png")
plt.close(fig)
print("saved")
