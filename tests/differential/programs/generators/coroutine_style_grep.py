def grep(pattern, out):
    try:
        while True:
            line = yield
            if pattern in line:
                out.append(line.split()[3])
    except GeneratorExit:
        out.append("closed")
found = []
g = grep("ERROR", found); next(g)
for line in open("server.log"):
    g.send(line)
g.close()
print(found)
