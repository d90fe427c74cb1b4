def helper():
    return 1
class K:
    def m(self):
        return 2
total = helper() + K().m()
if total > 2:
    return {"early": total}
print("not reached")
