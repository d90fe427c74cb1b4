import os, shutil, tempfile
class Temp:
    def __init__(self):
        self.path = tempfile.mkdtemp()
    def __del__(self):
        shutil.rmtree(self.path)
        print("removed", os.path.exists(self.path))
t = Temp()
print("work done")
