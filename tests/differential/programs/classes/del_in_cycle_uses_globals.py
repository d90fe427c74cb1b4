import os
LOG = []
class Job:
    def __init__(self): self.me = self
    def __del__(self):
        LOG.append("x"); print("job closed", len(LOG), os.getcwd())
j = Job()
print("last line")
