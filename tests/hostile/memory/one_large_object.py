# Asks for ever larger objects until memory runs out.
data = []
while True:
    data.append(bytearray(16 << 20))
