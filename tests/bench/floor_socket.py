"""Floor: a blocking CPython process that reads JSON from a Unix socket and answers in JSON."""

import json
import socket
import struct
import sys


def main() -> None:
    """Connect to the socket named by the first argument and answer until it is closed."""
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(sys.argv[1])
        with stream.makefile("rb") as reader:
            while header := reader.read(4):
                value = json.loads(reader.read(struct.unpack(">I", header)[0]))
                reply = json.dumps({"length": len(value)}).encode()
                stream.sendall(struct.pack(">I", len(reply)) + reply)


main()
