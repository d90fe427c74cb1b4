class Customer:
    def __init__(self):
        self.address = "x"
print(Customer().adress)
