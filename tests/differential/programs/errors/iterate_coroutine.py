for row in query("select 1"):
    print(row)
