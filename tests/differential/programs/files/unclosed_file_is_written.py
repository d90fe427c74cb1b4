import sys
f = open("unclosed.txt", "w")
f.write("a line without flush\n")
print(f.closed)
