import matplotlib.pyplot as plt
plt.figure()
plt.plot([1], [1], linestyle="wavy")
