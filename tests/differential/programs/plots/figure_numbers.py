import matplotlib.pyplot as plt
a = plt.figure(); b = plt.figure(5)
print(plt.get_fignums(), a.number, b.number, plt.gcf() is b, plt.fignum_exists(2))
plt.close("all")
