package isolation

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// report runs a program that prints findings, and returns them by name. Each line is a name, a
// space and the finding.
func report(t *testing.T, c harness.Client, code string) map[string]string {
	t.Helper()
	a := c.Post(t, harness.Program{Code: harness.Py(code), Timeout: 20_000})
	if a.HTTPStatus != 200 || a.Status != "completed" {
		t.Fatalf("got %v, want it completed", a)
	}
	found := map[string]string{}
	for line := range strings.Lines(a.Stdout) {
		name, finding, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		found[name] = finding
	}
	return found
}

// TestPrivileges checks which rights the kernel gives to the process that runs a program.
func TestPrivileges(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox|harness.OrdinaryUser|harness.OrdinaryUserWithRange, func(t *testing.T, s harness.Setup) {
		found := report(t, harness.Serve(t, s, nil).Alice(), `
			for line in open("/proc/self/status"):
			    name, value = line.split(":")
			    print(name, value.strip())
			print("root", os.getuid() == 0 or os.geteuid() == 0 or os.getgid() == 0)
			print("groups", [group for group in os.getgroups() if group == 0])
			print("map", open("/proc/self/uid_map").read().split())
			print("exec", os.popen("grep -c . /etc/shadow 2>&1; cat /proc/self/status | grep CapEff").read().split()[-1])
			for call in (lambda: os.setuid(0), lambda: os.seteuid(0), lambda: os.setgid(0), lambda: os.setgroups([0])):
			    try:
			        call()
			    except OSError:
			        pass
			print("after", os.getuid(), os.geteuid(), os.getgid())
			import resource
			print("core", resource.getrlimit(resource.RLIMIT_CORE))
			print("raise", end=" ")
			try:
			    resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20))
			    print("done")
			except (ValueError, OSError):
			    print("refused")
		`)
		want := map[string]string{
			"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000",
			"CapBnd": "0000000000000000", "CapAmb": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2",
			"root": "False", "groups": "[]", "exec": "0000000000000000", "core": "(1, 1)", "raise": "refused",
		}
		for name, value := range want {
			if got := found[name]; got != value {
				t.Errorf("%s = %q, want %q", name, got, value)
			}
		}
		if slices.Contains(strings.Fields(found["after"]), "0") {
			t.Errorf("ids after setuid and its kin = %s, want no 0", found["after"])
		}
		// With a user namespace, the second number of the map is the user on the host.
		if outside := strings.Split(found["map"], ", "); len(outside) == 3 && outside[1] == "'0'" && os.Geteuid() == 0 && s.Settings[harness.RunAs] != harness.Nobody && outside[2] == "'1']" {
			t.Errorf("user map = %s: the program's user is the server's", found["map"])
		}
	})
}

// TestSystemCalls makes system calls that no program needs: the filter must refuse them.
func TestSystemCalls(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox|harness.OrdinaryUser, func(t *testing.T, s harness.Setup) {
		found := report(t, harness.Serve(t, s, nil).Alice(), `
			import ctypes, errno, platform, socket
			libc = ctypes.CDLL(None, use_errno=True)
			numbers = {
			    "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308, "ptrace": 101,
			    "process_vm_readv": 310, "process_vm_writev": 311, "bpf": 321, "perf_event_open": 298, "keyctl": 250, "add_key": 248,
			    "request_key": 249, "userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426, "name_to_handle_at": 303,
			    "open_by_handle_at": 304, "init_module": 175, "finit_module": 313, "delete_module": 176, "kexec_load": 246,
			    "kexec_file_load": 320, "reboot": 169, "swapon": 167, "swapoff": 168, "settimeofday": 164, "clock_settime": 227,
			    "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173, "acct": 163, "quotactl": 179, "syslog": 103,
			    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "move_mount": 429, "open_tree": 428, "mount_setattr": 442,
			    "pidfd_getfd": 438, "kcmp": 312, "lookup_dcookie": 212, "modify_ldt": 154, "vhangup": 153, "fanotify_init": 300,
			    "move_pages": 279, "process_madvise": 440, "clone3": 435,
			} if platform.machine() == "x86_64" else {"unshare": 97, "mount": 40, "ptrace": 117, "bpf": 280, "io_uring_setup": 425}
			for name, number in numbers.items():
			    ctypes.set_errno(0)
			    arguments = {"unshare": (0x10000000,), "clone3": (0, 0)}.get(name, (0, 0, 0, 0, 0, 0))
			    result = libc.syscall(number, *[ctypes.c_long(argument) for argument in arguments])
			    print(name, "done" if result >= 0 else errno.errorcode[ctypes.get_errno()])
			for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x7E020000):
			    # clone, as fork does it: with SIGCHLD.
			    number = 56 if platform.machine() == "x86_64" else 220
			    pid = libc.syscall(number, ctypes.c_long(flag | 17), 0, 0, 0, 0)
			    if pid == 0:
			        os._exit(0)
			    print(f"clone{flag:#x}", "done" if pid > 0 else errno.errorcode[ctypes.get_errno()])
			# By their numbers, since not every Python has all of the names.
			families = {"AF_PACKET": 17, "AF_NETLINK": 16, "AF_ALG": 38, "AF_VSOCK": 40, "AF_BLUETOOTH": 31, "AF_TIPC": 30, "AF_CAN": 29, "AF_RDS": 21}
			for family, number in families.items():
			    try:
			        socket.socket(number, socket.SOCK_RAW if family in ("AF_PACKET", "AF_NETLINK") else socket.SOCK_STREAM)
			        print(family, "done")
			    except OSError as error:
			        print(family, errno.errorcode[error.errno])
			for kind in (socket.AF_INET, socket.AF_INET6):
			    try:
			        socket.socket(kind, socket.SOCK_RAW, 1)
			        print("raw", "done")
			    except OSError:
			        print("raw", "EPERM")
		`)
		if len(found) < 20 {
			t.Errorf("%d findings, want more: %v", len(found), found)
		}
		for name, got := range found {
			// ENOSYS makes programs fall back to other calls. Any other error would mean that the
			// kernel had looked at the arguments.
			if got != "EPERM" && (got != "ENOSYS" || name != "clone3") {
				t.Errorf("%s: %s, want EPERM", name, got)
			}
		}
	})
}

// TestNetwork tries to reach the network, the server and the host.
func TestNetwork(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox|harness.OrdinaryUser, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		address, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		found := report(t, server.Alice(), fmt.Sprintf(`
			import socket
			print("interfaces", [line.split(":")[0].strip() for line in open("/proc/net/dev").read().splitlines()[2:]])
			print("routes", len(open("/proc/net/route").read().splitlines()[1:]))
			def connect(name, family, address):
			    with socket.socket(family, socket.SOCK_STREAM) as s:
			        s.settimeout(2)
			        try:
			            s.connect(address)
			            print(name, "connected")
			        except OSError as error:
			            print(name, "refused")
			connect("server", socket.AF_INET, ("127.0.0.1", %s))
			connect("outside", socket.AF_INET, ("1.1.1.1", 80))
			connect("metadata", socket.AF_INET, ("169.254.169.254", 80))
			connect("outside6", socket.AF_INET6, ("2606:4700:4700::1111", 80))
			try:
			    print("names", socket.getaddrinfo("example.com", 80))
			except OSError:
			    print("names", "refused")
			listener = socket.create_server(("127.0.0.1", 0))
			connect("own", socket.AF_INET, listener.getsockname())
			print("unix", [line for line in open("/proc/net/unix").read().splitlines()[1:] if "/" in line])
		`, address.Port()))
		want := map[string]string{
			"interfaces": "['lo']", "routes": "0", "server": "refused", "outside": "refused", "metadata": "refused",
			"outside6": "refused", "names": "refused", "own": "connected",
		}
		for name, value := range want {
			if got := found[name]; got != value {
				t.Errorf("%s: %q, want %q", name, got, value)
			}
		}
	})
}

// TestFilesOfTheHostAreHidden looks for files of the host and tries to write outside the sandbox.
func TestFilesOfTheHostAreHidden(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox|harness.OrdinaryUser|harness.OrdinaryUserWithRange, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		dir, err := harness.Scratch()
		if err != nil {
			t.Fatal(err)
		}
		canary := filepath.Join(dir, "canary")
		if err := os.WriteFile(canary, []byte("canary of the host"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		found := report(t, server.Alice(), fmt.Sprintf(`
			def look(name, path):
			    try:
			        if os.path.isdir(path):
			            print(name, "seen" if os.listdir(path) else "empty")
			        else:
			            open(path, "rb").read(1)
			            print(name, "seen")
			    except OSError as error:
			        print(name, "hidden")
			with open("/proc/kallsyms") as symbols:
			    print("addresses", "seen" if any(int(line.split()[0], 16) for line in symbols) else "hidden")
			canary, state = %q, %q
			for place in ("/root", "/home", "/boot", "/sys/class", "/sys/devices", "/sys/kernel", "/sys/module", "/srv", "/media", "/var/log", "/var/lib", "/etc/shadow", "/etc/ssh", "/run",
			              "/var/run/docker.sock", "/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda", "/dev/net/tun", "/dev/fuse",
			              "/proc/kcore", "/proc/1/environ", "/proc/1/mem", "/proc/1/maps", "/proc/1/root/etc", "/proc/1/cwd", "/proc/1/fd"):
			    look(place, place)
			look("canary", canary)
			look("state", state)
			look("canary-by-root", "/proc/1/root" + canary)
			look("canary-by-self", "/proc/self/root" + canary)
			look("canary-by-dots", "../../../../../../.." + canary)
			print("docker", os.path.exists("/.dockerenv") and os.path.exists(state))
			def write(path):
			    try:
			        open(path, "w").close()
			        return "written"
			    except OSError:
			        return "refused"
			for path in ("/x", "/usr/x", "/etc/passwd", "/opt/x", "/opt/fermata/x", "/mnt/x", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger",
			             "/proc/self/oom_score_adj/x", "/dev/x", os.__file__, sys.executable):
			    print("write:" + path, write(path))
			for path in ("/mnt/data/x", "/tmp/x"):
			    print("may:" + path, write(path))
			print("suid", os.popen("find / -xdev -perm /6000 -newer /proc/1 2>/dev/null | head -1").read().strip())
		`, canary, server.Settings["STATE_DIR"]))
		for name, got := range found {
			switch {
			case strings.HasPrefix(name, "may:"):
				if got != "written" {
					t.Errorf("%s: %s, want written", name, got)
				}
			case strings.HasPrefix(name, "write:"):
				if got != "refused" {
					t.Errorf("%s: %s, want refused", name, got)
				}
			case name == "docker", name == "suid":
			case s.Docker() && slices.Contains([]string{"/run", "/var/lib", "/var/log"}, name): // the image's own
			case got == "seen":
				t.Errorf("%s is seen", name)
			}
		}
		if len(found) < 40 {
			t.Errorf("%d findings, want more: %v", len(found), found)
		}
	})
}

// TestSecretsOfTheServerAreHidden searches environment, files and memory for secrets of the server.
func TestSecretsOfTheServerAreHidden(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox|harness.OrdinaryUser, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		// The program gets the secrets backwards, so that it does not find its own text.
		found := report(t, c, fmt.Sprintf(`
			print("environment", [name for name in os.environ if "FERMATA" in name or "KEY" in name or "SECRET" in name])
			print("path", os.environ.get("PATH"))
			needles = ["".join(reversed(text)).encode() for text in (%q, %q)]
			hits = []
			def search(path):
			    try:
			        with open(path, "rb") as file:
			            data = file.read(1 << 20)
			        hits.extend(path for needle in needles if needle in data)
			    except OSError:
			        pass
			import glob
			for pattern in ("/proc/*/environ", "/proc/*/cmdline", "/proc/*/task/*/environ", "/mnt/data/*", "/tmp/*", "/opt/*/*", "/etc/*", "/run/*"):
			    for path in glob.glob(pattern):
			        search(path)
			with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
			    for line in maps:
			        bounds, permissions, *rest = line.split()
			        if not permissions.startswith("rw"):
			            continue
			        begin, end = (int(bound, 16) for bound in bounds.split("-"))
			        memory.seek(begin)
			        try:
			            data = memory.read(end - begin)
			        except OSError:
			            continue
			        # What was just made of the text backwards is here, once or twice.
			        hits.extend("memory" for needle in needles if data.count(needle) > 8)
			print("hits", hits)
		`, reversed(harness.Secret), reversed("alice:key-a,bob:key-b")))
		if got := found["environment"]; got != "[]" {
			t.Errorf("environment of a program has %s", got)
		}
		if got := found["hits"]; got != "[]" {
			t.Errorf("secrets of the server are in %s", got)
		}
	})
}

// TestNothingShared checks that a program cannot change the libraries for other programs.
func TestNothingShared(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox|harness.OrdinaryUser, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		found := report(t, c, `
			json.JSONDecodeError.__doc__ = "changed"
			print("random", os.urandom(16).hex())
		`)
		second := report(t, c, `
			print("changed", "changed" in json.JSONDecodeError.__doc__)
			print("random", os.urandom(16).hex())
		`)
		if second["changed"] != "False" {
			t.Error("a program sees what another one has written")
		}
		if second["random"] == found["random"] {
			t.Error("two programs have the same random bytes")
		}
	})
}

func reversed(text string) string {
	runes := []rune(text)
	slices.Reverse(runes)
	return string(runes)
}

// TestOtherExecutions checks that a program finds nothing of another one that runs at the same
// time.
func TestOtherExecutions(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox|harness.OrdinaryUser|harness.OrdinaryUserWithRange, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		pause := server.Alice().Pause(t, harness.Program{Code: harness.Py(`
			import socket, subprocess
			open("/mnt/data/secret", "w").write("mine")
			open("/tmp/secret", "w").write("mine")
			open("/dev/shm/secret", "w").write("mine")
			listener = socket.socket(socket.AF_UNIX)
			listener.bind("\0fermata-test")
			listener.listen()
			local = socket.create_server(("127.0.0.1", 45678))
			child = subprocess.Popen(["sleep", "600"])
			from multiprocessing import shared_memory
			shared = shared_memory.SharedMemory("fermata_test", True, 16)
			import ctypes
			ctypes.CDLL(None).shmget(4711, 16, 0o1666)
			print(await ask())
			shared.close(); shared.unlink()
			child.kill()
		`), Tools: harness.Tools("ask")})
		found := report(t, server.Bob(), `
			import ctypes, signal, socket
			print("files", [path for place in ("/mnt/data", "/tmp", "/dev/shm") for path in os.listdir(place)])
			def connect(*arguments):
			    try:
			        with socket.socket(arguments[0]) as s:
			            s.connect(arguments[1])
			            return "connected"
			    except OSError:
			        return "refused"
			print("abstract", connect(socket.AF_UNIX, "\0fermata-test"))
			print("tcp", connect(socket.AF_INET, ("127.0.0.1", 45678)))
			print("shm", ctypes.CDLL(None).shmget(4711, 16, 0o666))
			pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
			print("processes", len(pids))
			print("sleepers", [pid for pid in pids if b"600" in open(f"/proc/{pid}/cmdline", "rb").read()])
			killed = []
			for pid in range(2, 400):
			    if pid != os.getpid():
			        try:
			            os.kill(pid, signal.SIGKILL)
			            killed.append(pid)
			        except OSError:
			            pass
			print("killed", killed)
			for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT, signal.SIGUSR1):
			    try:
			        os.kill(1, number)
			    except OSError:
			        pass
			try:
			    os.kill(-1, signal.SIGKILL)
			except OSError:
			    pass
			print("alive yes")
		`)
		for name, want := range map[string]string{
			"files": "[]", "abstract": "refused", "tcp": "refused", "shm": "-1", "sleepers": "[]", "killed": "[]", "alive": "yes",
		} {
			if got := found[name]; got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if got := found["processes"]; got != "1" && got != "2" && got != "3" {
			t.Errorf("%s processes are to be seen, want the program's own and its supervisor", got)
		}
		server.Alice().Post(t, pause.Continue(harness.Echo)).Completes(t, "{}\n")
	})
}

// TestSpecialFiles tries to make devices, setuid programs and other files that could do harm.
func TestSpecialFiles(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox|harness.OrdinaryUser, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		found := report(t, c, `
			import stat
			def refused(name, call):
			    try:
			        call()
			        print(name, "done")
			    except OSError:
			        print(name, "refused")
			refused("device", lambda: os.mknod("device", stat.S_IFCHR | 0o666, os.makedev(1, 1)))
			refused("block", lambda: os.mknod("block", stat.S_IFBLK | 0o666, os.makedev(8, 0)))
			refused("hardlink", lambda: os.link("/etc/passwd", "hard"))
			refused("chown", lambda: (open("mine", "w").close(), os.chown("mine", 0, 0)))
			os.symlink("/etc/shadow", "shadow")
			os.symlink("loop", "loop")
			os.symlink("/proc/1/root", "root")
			try:
			    os.mkfifo("fifo")
			except OSError:
			    pass
			os.mkdir("a" * 255)
			deep = os.getcwd()
			for _ in range(200):
			    os.mkdir("d" * 200)
			    os.chdir("d" * 200)
			open("end", "w").close()
			import shutil
			shutil.copy("/bin/sh", "/tmp/sh")
			os.chmod("/tmp/sh", 0o6755)
			print("suid", os.popen("/tmp/sh -p -c 'id -u; grep CapEff /proc/self/status'").read().split())
			with open("/mnt/data/sparse", "wb") as file:
			    try:
			        file.truncate(1 << 40)
			        print("sparse", "done")
			    except OSError:
			        print("sparse", "refused")
		`)
		for name, want := range map[string]string{
			"device": "refused", "block": "refused", "hardlink": "refused", "chown": "refused", "sparse": "refused",
		} {
			if got := found[name]; got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if got := found["suid"]; strings.Contains(got, "'0'") || !strings.Contains(got, "0000000000000000") {
			t.Errorf("a setuid shell has %s, want no root and no capability", got)
		}
		c.Post(t, harness.Program{Code: "print(os.listdir())"}).Completes(t, "[]\n")
	})
}
