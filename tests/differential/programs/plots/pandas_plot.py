import pandas as pd
import matplotlib.pyplot as plt
ax = pd.DataFrame({"a": [1, 3, 2]}).plot(kind="bar", title="A")
ax.figure.savefig("bars.png")
plt.close(ax.figure)
print(ax.get_title(), len(ax.patches))
