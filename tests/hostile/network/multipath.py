# Makes sockets of protocols that nobody needs: multipath TCP, UDP-Lite, SCTP, DCCP, L2TP, SMC.
for kind, protocol in ((1, 262), (2, 136), (1, 132), (5, 132), (6, 33), (2, 115), (1, 256), (1, 0x7FFFFFFF), (10, 0), (3, 1), (3, 255)):
    for family in (2, 10):
        fd = syscall(41, family, kind, protocol)
        if fd >= 0:
            breach(f"socket of family {family}, kind {kind}, protocol {protocol}")
