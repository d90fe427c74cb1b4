# Makes COUNT system calls of all numbers with odd arguments, from children that may die of them.
import random

CHILDREN = 6
SLOT = 16
# They merely end the child: exit, exit_group, rt_sigreturn.
ENDS = (60, 231, 15)
# They wait, or take from the child what it needs to go on, and are made less often: reads, waits,
# mappings, masks and handlers of signals, limits, filters, segments.
SELDOM = frozenset((
    0, 3, 7, 9, 10, 11, 12, 13, 14, 17, 19, 23, 25, 28, 34, 35, 37, 38, 43, 45, 47, 58, 61, 62, 65, 72, 73, 97, 126, 127, 128, 130, 131,
    157, 158, 160, 200, 202, 203, 218, 220, 230, 232, 234, 242, 243, 247, 270, 271, 273, 281, 288, 295, 299, 302, 317, 327, 334, 436,
    441, 444, 446, 449, 454, 455, 456,
))  # fmt: skip
progress = mmap.mmap(-1, CHILDREN * SLOT)


def fuzz(slot, seed):
    """Make calls until one of them ends this process, counting them in memory that the parent sees."""
    rng = random.Random(seed)
    own = os.getpid()
    os.setsid()
    # A call that waits is interrupted.
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    buffer = (ctypes.c_char * 4096)()
    address = ctypes.addressof(buffer)
    pipe = os.pipe()
    pair = socket.socketpair()
    file = os.open(f"/tmp/fuzz{slot}", os.O_CREAT | os.O_RDWR)
    odd = (
        0, 1, 2, 3, 4, 5, 8, 16, 17, 18, 19, 64, 255, 4095, 4096, 65536, 1 << 20, 1 << 31, 1 << 32, (1 << 63) - 1, -1, -2, -22, -100,
        0xFFFFFFFF, 0x7FFFFFFF, 0xFFFFFFFF81000000, 0x7FFFFFFFF000, own, *pipe, pair[0].fileno(), file,
        address, address + 8, address + 4090, id(odd_object), 0x10000000, 0x7E020000, 0x8000,
    )  # fmt: skip
    for count in range(1, 1 << 31):
        if count % 16 == 1:
            for offset in range(0, 256, 8):
                struct.pack_into("Q", buffer, offset, rng.choice(odd) & 0xFFFFFFFFFFFFFFFF)
            if rng.random() < 0.5:
                buffer[0:16] = rng.choice((b"/proc/self/mem\0\0", b"/tmp/x\0/tmp/y\0\0\0", b"/dev/null\0......", b".\0..\0user.x\0....."[:16]))
        number = rng.randrange(601)
        if number in ENDS or number in SELDOM and rng.random() < 0.9:
            continue
        struct.pack_into("QQ", progress, slot * SLOT, count, number)
        syscall(number, *(rng.choice(odd) if rng.random() < 0.9 else rng.getrandbits(63) for _ in range(6)))
        if os.getpid() != own:
            os._exit(0)  # a child that a call has made


for signal_number in range(1, 65):
    if signal_number != signal.SIGCHLD:
        attempt(signal.signal, signal_number, signal.SIG_IGN)
odd_object = object()
children = {}  # its number -> slot, calls seen, when they changed
made, deaths = 0, 0
seeds = random.Random(SEED)
begin = printed = time.monotonic()
while made < COUNT and time.monotonic() < begin + LIMIT:
    while len(children) < CHILDREN:
        slot = min(set(range(CHILDREN)) - {slot for slot, _, _ in children.values()})
        struct.pack_into("QQ", progress, slot * SLOT, 0, 0)
        seed = seeds.getrandbits(64)
        try:
            children[spawn(fuzz, slot, seed)] = (slot, 0, time.monotonic())
        except OSError:
            break  # what others have made takes the place
    time.sleep(0.005)
    for pid, (slot, seen, changed) in list(children.items()):
        count, number = struct.unpack_from("QQ", progress, slot * SLOT)
        made += count - seen
        now = time.monotonic()
        if count != seen:
            children[pid] = (slot, count, now)
        elif now > changed + 0.1:
            attempt(os.kill, pid, signal.SIGKILL)
        if attempt(os.waitpid, pid, os.WNOHANG) != (0, 0):
            del children[pid]
            deaths += 1
    if time.monotonic() > printed + 0.2:
        printed = time.monotonic()
        print(f"MADE {made}", flush=True)
print(f"MADE {made} calls, {deaths} children have ended")
attempt(os.kill, -1, signal.SIGKILL)
