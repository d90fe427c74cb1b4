import struct
packed = struct.pack("<IhB3s", 2025, -3, 255, b"abc")
print(packed.hex(" "), struct.unpack("<IhB3s", packed), struct.calcsize("<IhB3s"))
print(int.from_bytes(b"\x01\x02", "big"), (1000).to_bytes(2, "little"), bytes.fromhex("ff00"))
view = memoryview(bytearray(packed)); view[0] = 7; print(view[0], len(view))
