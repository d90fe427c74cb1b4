y = 5
exec("z = y * 2")
text = "{y}-{z}".format(**globals())
return [text, "y" in locals(), "z" in vars(), __name__]
