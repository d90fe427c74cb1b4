with open("dos.txt", "w", newline="\r\n") as f:
    f.write("a\nb\n")
print(open("dos.txt", "rb").read(), open("dos.txt").read().encode(), "x\x0by\u2028z\n".splitlines())
