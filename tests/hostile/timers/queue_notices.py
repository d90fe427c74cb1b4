# Has the kernel signal and start threads by notices of message queues (mq_notify).
queue = syscall(240, b"q", 0o102, 0o600, 0)
event = ctypes.create_string_buffer(64)
for number in (9, 18, 19, 34):
    struct.pack_into("Qii", event, 0, 0, number if number != 9 else 10, 0)
    signal.signal(10, signal.SIG_IGN)
    syscall(244, queue, event)
    syscall(242, queue, b"x", 1, 0, 0)
    syscall(244, queue, 0)
