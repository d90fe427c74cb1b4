# Makes POSIX shared memory, unlinks it and keeps it open by descriptors in flight.
from multiprocessing import shared_memory
kept = []
for i in range(20):
    segment = attempt(shared_memory.SharedMemory, f"s{i}", True, 1 << 20)
    if segment:
        kept.append(segment)
        segment.buf[0] = 1
        segment.unlink()
