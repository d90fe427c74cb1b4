counter = 0
CONFIG = {"limit": 3}
def bump():
    global counter
    counter += 1
    if counter >= CONFIG["limit"]:
        globals()["done"] = True
while "done" not in globals():
    bump()
print(counter, done, "bump" in globals(), __name__)
