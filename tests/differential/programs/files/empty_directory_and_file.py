os.makedirs("results/raw", exist_ok=True)
open("empty.txt", "w").close()
print(os.path.isdir("results/raw"), os.path.getsize("empty.txt"), sorted(os.listdir("results")))
