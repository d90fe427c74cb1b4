# Calls a tool by frames and never reads the results, which are large.
# tools: ask
# timeout: 1500
# result: 4000000
attempt(os.write, 4, frame("C", '[{"n":1,"tool":"ask","input":{}}]')) or os.write(3, frame("C", '[{"n":1,"tool":"ask","input":{}}]'))
time.sleep(10)
