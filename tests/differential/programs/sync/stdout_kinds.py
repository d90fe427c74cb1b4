import sys
sys.stdout.write("no newline")
sys.stdout.flush()
print()
print("a", "b", sep="-", end="|\n")
sys.stdout.buffer.write("bytes é\n".encode())
os.write(1, b"raw\n")
print("to stderr", file=sys.stderr)
print("\ttab\r\x0bvt", "nul\0", "é", flush=True)
