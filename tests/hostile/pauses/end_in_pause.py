# A thread ends the process while another waits for a tool.
# tools: ask
# pause: 300
threading.Timer(0.03, os._exit, (5,)).start()
await ask()
