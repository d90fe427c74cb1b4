import csv, io
buffer = io.StringIO(newline="")
w = csv.writer(buffer, delimiter=";", quoting=csv.QUOTE_NONNUMERIC)
w.writerows([["a;b", 1, 'say "hi"'], ["line\nbreak", 2.5, ""]])
print(repr(buffer.getvalue()))
buffer.seek(0)
print(list(csv.reader(buffer, delimiter=";")), csv.Sniffer().sniff("a|b|c\n1|2|3\n").delimiter)
