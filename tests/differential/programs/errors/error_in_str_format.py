print("{:d}".format("text"))
