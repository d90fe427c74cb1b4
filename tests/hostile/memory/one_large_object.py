# Asks for ever larger objects until memory is over.
data = []
while True:
    data.append(bytearray(16 << 20))
