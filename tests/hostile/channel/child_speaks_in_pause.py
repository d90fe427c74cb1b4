# A child speaks on both channels while the program waits for a tool.
# tools: ask
# pause: 300
def speak():
    while True:
        send(frame("C", '[{"n":77,"tool":"ask","input":{}}]') + frame("D", "{}"))
        time.sleep(0.01)
spawn(speak)
print(await ask())
os.kill(-1, 9)
