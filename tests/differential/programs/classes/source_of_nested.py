import inspect
class Outer:
    class Inner:
        x = 1
    def method(self):
        # a comment
        return [1,
                2]
print(inspect.getsource(Outer.Inner), inspect.getsource(Outer.method), inspect.getcomments(Outer))
