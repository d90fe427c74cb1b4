e = ValueError("bad value")
e.add_note("in row 3")
e.add_note("of orders.csv")
raise e
