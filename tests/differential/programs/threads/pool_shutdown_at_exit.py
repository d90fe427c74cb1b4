from concurrent.futures import ThreadPoolExecutor
import time
pool = ThreadPoolExecutor(1)
pool.submit(lambda: (time.sleep(0.05), print("job done")))
print("submitted")
