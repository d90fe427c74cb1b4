class Greeter:
    def greet(name):
        return f"hi {name}"
print(Greeter.greet("a"))
print(Greeter().greet("b"))
