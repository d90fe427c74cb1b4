import asyncio, threading, time

def w():
    time.sleep(0.05)
    print("thread got", asyncio.run(echo(value=7)))

threading.Thread(target=w).start()
print("end")
