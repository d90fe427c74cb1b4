# Writes frames to the supervisor and to the server that resemble good ones.
import random

rng = random.Random(SEED)
NUMBERS = (0, 1, -1, 2, 41, 1 << 31, 1 << 53, 1 << 64, 10**30, 1.5, 1e308, -0.0)
TEXTS = ("", "ask", "other", "error", "\x00", "é", "\ud800", "../x", "x" * 1000, "n", "tool", "input", "exit")


def value(depth=0):
    """Return some JSON value."""
    kind = rng.randrange(8 if depth < 4 else 4)
    if kind < 2:
        return rng.choice(NUMBERS)
    if kind == 2:
        return rng.choice(TEXTS)
    if kind == 3:
        return rng.choice((None, True, False))
    if kind < 6:
        return [value(depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(TEXTS): value(depth + 1) for _ in range(rng.randrange(4))}


def call():
    """Return a call that has something wrong with it at times."""
    made = {"n": rng.choice((1, 2, 3, 7)), "tool": "ask", "input": {"x": 1}}
    while rng.random() < 0.4:
        made[rng.choice(("n", "tool", "input", "id"))] = value()
    if rng.random() < 0.1:
        made.pop(rng.choice(list(made)))
    return made


def payload():
    """Return the contents of a frame."""
    chance = rng.random()
    if chance < 0.3:
        return json.dumps([call() for _ in range(rng.choice((0, 1, 1, 2, 5, 300)))]).encode()
    if chance < 0.45:
        return json.dumps({rng.choice(("exit", "error", "memory", "state", "round", "python", "protocol")): value() for _ in range(3)}).encode()
    if chance < 0.55:
        return json.dumps(value()).encode()
    if chance < 0.6:
        head = json.dumps({"code": value(), "stdout": rng.choice((0, 3, -1, 1 << 40)), "stderr": 0}).encode()
        return struct.pack(">I", rng.choice((len(head), len(head), 0, 1 << 31))) + head + b"out"
    if chance < 0.62:
        return b"[" * rng.choice((1000, 100_000, 5_000_000))
    if chance < 0.63:
        return b"[" + b",".join(b'{"n":%d,"tool":"ask","input":{}}' % n for n in range(200_000)) + b"]"
    if chance < 0.64:
        return b'[{"n":1,"tool":"ask","input":{"x":"' + b"x" * (20 << 20) + b'"}}]'
    return rng.randbytes(rng.choice((0, 1, 10, 5000)))


def stream():
    """Return the bytes of a frame or a few, good or bad."""
    if rng.random() < 0.3:
        data = bytearray(rng.choice(GOLDEN).encode("latin-1"))
    else:
        body = payload()
        lie = rng.choice((0,) * 12 + (1, -1, 5, 1 << 25, (1 << 32) - 1 - len(body)))
        data = bytearray(frame(chr(rng.choice(b"CCCCDXHYMBNAGRKFLTSO\0\xff")), body, max(0, len(body) + lie)))
    while data and rng.random() < 0.2:
        place = rng.randrange(len(data))
        match rng.randrange(3):
            case 0:
                data[place] = rng.randrange(256)
            case 1:
                del data[place : place + rng.randrange(8)]
            case _:
                data[place:place] = data[: rng.randrange(20)]
    return bytes(data)


def write(fd, data):
    """Write everything, in one piece or in several."""
    while data:
        piece = data[: rng.choice((1, 7, 1 << 20, 1 << 20, 1 << 20))] if len(data) < 1000 else data
        written = attempt(os.write, fd, piece)
        if not written:
            return
        data = data[written:]


for _ in range(rng.randrange(1, 30)):
    write(rng.choice((3, 4)), stream())
    if rng.random() < 0.1:
        time.sleep(0.005)
    if rng.random() < 0.05:
        attempt(lambda: select.select([3, 4], [], [], 0.01) and os.read(rng.choice((3, 4)), 1000))
    if rng.random() < 0.05:
        await ask(n=1)
if rng.random() < 0.2:
    time.sleep(0.3)
if rng.random() < 0.1:
    os._exit(rng.randrange(256))
if rng.random() < 0.1:
    await ask()
