import threading

def work():
    data = {"a": 1}
    return data["b"]

t = threading.Thread(target=work, name="loader")
t.start()
t.join()
print("main goes on")
