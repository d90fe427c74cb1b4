import pickle
from datetime import date
class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y
    def __eq__(self, other):
        return (self.x, self.y) == (other.x, other.y)
with open("points.pkl", "wb") as f:
    pickle.dump({"points": [Point(1, 2), Point(3, 4)], "day": date(2025, 1, 2)}, f, protocol=4)
loaded = pickle.load(open("points.pkl", "rb"))
print(loaded["points"] == [Point(1, 2), Point(3, 4)], loaded["day"], type(loaded["points"][0]).__module__)
