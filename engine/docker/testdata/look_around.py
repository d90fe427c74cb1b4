"""What a program finds in its sandbox, and what it is refused. Prints one JSON value."""

import ctypes
import errno
import glob
import json
import os
import resource
import signal
import socket

libc = ctypes.CDLL(None, use_errno=True)


def attempt(function, *args):
    try:
        result = function(*args)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    return "done" if not isinstance(result, int) or result >= 0 else errno.errorcode[ctypes.get_errno()]


def read(path):
    with open(path, "rb") as file:
        return file.read(100).decode("utf-8", "replace")


def fill(path):
    written = 0
    try:
        with open(path, "wb", buffering=0) as file:
            while written < 200 << 20:
                written += file.write(bytes(1 << 20))
    except OSError as error:
        return errno.errorcode[error.errno]
    finally:
        os.unlink(path)
    return written


def fork_many():
    children = []
    try:
        for n in range(1000):
            pid = os.fork()
            if pid == 0:
                signal.pause()
            children.append(pid)
    except OSError as error:
        return [errno.errorcode[error.errno], len(children)]
    finally:
        for pid in children:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
    return ["", len(children)]


def open_many():
    opened = []
    try:
        while len(opened) < 5000:
            opened.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        return errno.errorcode[error.errno]
    finally:
        for fd in opened:
            os.close(fd)
    return len(opened)


with open("/proc/self/status") as file:
    status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
facts = {
    "uid": [os.getuid(), os.geteuid(), os.getgid(), os.getegid()],
    "groups": os.getgroups(),
    "capabilities": [status[k] for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
    "no_new_privs": status["NoNewPrivs"],
    "seccomp": status["Seccomp"],
    "environment": sorted(os.environ),
    "descriptors": sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:4],
    "directory": os.getcwd(),
    "host": socket.gethostname(),
    "routes": len(open("/proc/net/route").readlines()) - 1,
    "interfaces": [line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]],
    "resolvers": [line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver")],
    "core": resource.getrlimit(resource.RLIMIT_CORE)[1],
    "file_size": resource.getrlimit(resource.RLIMIT_FSIZE)[1],
    "docker_sockets": glob.glob("/run/docker*") + glob.glob("/var/run/docker*"),
    "fork_many": fork_many(),
    "attempts": {
        "write /": attempt(open, "/x", "w"),
        "write /usr": attempt(open, "/usr/x", "w"),
        "write the runner": attempt(open, "/opt/fermata/fermata/worker.py", "a"),
        "write /etc/hosts": attempt(open, "/etc/hosts", "a"),
        "write /etc/resolv.conf": attempt(open, "/etc/resolv.conf", "a"),
        "write a cgroup": attempt(
            open, (glob.glob("/sys/fs/cgroup/memory/memory.limit_in_bytes") + ["/sys/fs/cgroup/memory.max"])[0], "w"
        ),
        "open stdin of the supervisor": attempt(open, "/proc/1/fd/0", "w"),
        "open stdout of the supervisor": attempt(open, "/proc/1/fd/1", "w"),
        "read environment of the supervisor": attempt(read, "/proc/1/environ"),
        "read memory of the supervisor": attempt(read, "/proc/1/mem"),
        "trace the supervisor": attempt(libc.ptrace, 16, 1, 0, 0),
        "connect": attempt(socket.create_connection, ("192.0.2.1", 80), 5),
        "connect by IPv6": attempt(socket.create_connection, ("2001:db8::1", 80), 5),
        "packet socket": attempt(socket.socket, 17, socket.SOCK_RAW, 0),
        "raw socket": attempt(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1),
        "netlink socket": attempt(socket.socket, 16, socket.SOCK_RAW, 0),
        "alg socket": attempt(socket.socket, 38, socket.SOCK_SEQPACKET, 0),
        "vsock socket": attempt(socket.socket, 40, socket.SOCK_STREAM, 0),
        "user namespace": attempt(libc.unshare, 0x10000000),
        "mount": attempt(libc.mount, b"none", b"/tmp", b"tmpfs", 0, None),
        "io_uring": attempt(libc.syscall, 425, 1, 0),
        "bpf": attempt(libc.syscall, 321, 0, 0, 0),
        "keyctl": attempt(libc.syscall, 250, 0, 0, 0),
        "personality": attempt(libc.personality, 8),
        "become root": attempt(os.setuid, 0),
        "fill /mnt/data": fill("/mnt/data/x"),
        "fill /tmp": fill("/tmp/x"),
        "fill /dev/shm": fill("/dev/shm/x"),
        "open many files": open_many(),
    },
}
print(json.dumps(facts))
