import pickle
def make():
    class Inner: pass
    return Inner()
try:
    pickle.dumps(make())
except (pickle.PicklingError, AttributeError) as e:
    print(type(e).__name__, str(e)[:40])
pickle.dumps(lambda: 1)
