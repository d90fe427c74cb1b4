import io
import matplotlib.pyplot as plt
fig = plt.figure(figsize=(1, 1))
fig.gca().pie([1, 2])
b = io.BytesIO(); fig.savefig(b, format="png"); plt.close(fig)
print(b.getvalue()[1:4], b.tell() > 500)
