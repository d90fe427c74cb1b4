import sys
f = open("partial.csv", "w")
for n in range(3):
    f.write(f"{n},{n * n}\n")
print("leaving")
sys.exit(0)
