import matplotlib.pyplot as plt
plt.plot([3, 1, 2])
plt.show()
plt.savefig("after.png")
plt.close("all")
print(os.path.getsize("after.png") > 5000)
