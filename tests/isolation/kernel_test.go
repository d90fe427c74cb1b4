package isolation

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// system is the beginning of programs that make system calls by their numbers.
const system = `
	import ctypes, errno, platform, resource, socket, time
	libc = ctypes.CDLL(None, use_errno=True)
	numbers = {
	    "clone": 56, "fcntl": 72, "fsync": 74, "sync": 162, "inotify_init1": 294, "inotify_add_watch": 254, "mq_open": 240,
	    "prlimit64": 302, "sched_setaffinity": 203, "sched_setscheduler": 144, "setpriority": 141, "ioprio_set": 251,
	    "socket": 41, "syncfs": 306, "timer_create": 222, "seccomp": 317,
	} if platform.machine() == "x86_64" else {
	    "clone": 220, "fcntl": 25, "fsync": 82, "sync": 81, "inotify_init1": 26, "inotify_add_watch": 27, "mq_open": 180,
	    "prlimit64": 261, "sched_setaffinity": 122, "sched_setscheduler": 119, "setpriority": 140, "ioprio_set": 30,
	    "socket": 198, "syncfs": 267, "timer_create": 107, "seccomp": 277,
	}
	def call(name, *arguments):
	    ctypes.set_errno(0)
	    result = libc.syscall(numbers[name], *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
	    return result if result >= 0 else errno.errorcode[ctypes.get_errno()]
	def attempt(function, *arguments):
	    try:
	        function(*arguments)
	        return "done"
	    except OSError as error:
	        return errno.errorcode[error.errno]
`

// bystander is a program that notices if its priority changes while it is paused.
const bystander = "before = os.getpriority(os.PRIO_PROCESS, 0)\nprint(await ask(), os.getpriority(os.PRIO_PROCESS, 0) - before)"

// finds runs a program as alice and compares what it reports with what it should report.
// Meanwhile a program of bob's is paused, which must then go on undisturbed.
func finds(t *testing.T, s *harness.Server, code string, want map[string]string) map[string]string {
	t.Helper()
	paused := s.Bob().Pause(t, harness.Program{Code: bystander, Tools: harness.Tools("ask")})
	found := report(t, s.Alice(), harness.Py(system)+harness.Py(code))
	for name, value := range want {
		if got := found[name]; got != value {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
	s.Bob().Post(t, paused.Continue(harness.Echo)).Completes(t, "{} 0\n")
	return found
}

// TestNoSiblings tries to make a child whose parent is outside the sandbox, which would keep the
// sandbox from ending.
func TestNoSiblings(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, nil)
		before := harness.Resting(server.Processes)
		finds(t, server, `
			for name, flags in (("sibling", 0x8000 | 17), ("thread's", 0x8000), ("at its end", 18), ("child", 17)):
			    pid = call("clone", flags, 0, 0, 0, 0)
			    if pid == 0:
			        os._exit(0)
			    print(name.replace(" ", "-"), pid if isinstance(pid, str) else "done")
		`, map[string]string{"sibling": "EPERM", "thread's": "EPERM", "at-its-end": "EPERM", "child": "done"})
		if after := harness.Resting(server.Processes); after > before {
			t.Errorf("%d processes are left of %d", after, before)
		}
	})
}

// groupAttacks changes the priority of, stops and kills every process that the program can reach
// by its process group or user.
const groupAttacks = `
	import os, signal, sys
	if os.fork() == 0:
	    try:
	        os.setpriority(os.PRIO_PGRP, 0, 19)
	        os.setpriority(os.PRIO_USER, 0, 19)
	    except OSError:
	        pass
	    os.kill(0, signal.SIGSTOP)
	    os._exit(0)
	os.waitpid(-1, os.WUNTRACED)
	os.killpg(0, signal.SIGKILL)
`

// strikesAlone checks that signals to its process group reach only the program itself.
func strikesAlone(t *testing.T, server *harness.Server) {
	t.Helper()
	paused := server.Bob().Pause(t, harness.Program{Code: bystander, Tools: harness.Tools("ask")})
	for _, code := range []string{"import os\nos.kill(0, 9)", "import os\nos.killpg(0, 19)", harness.Py(groupAttacks)} {
		a := server.Alice().Post(t, harness.Program{Code: code, Timeout: 2000})
		if a.HTTPStatus != 200 && a.HTTPStatus != 408 || a.Status != "error" {
			t.Errorf("got %v, want a program that ended or stopped itself", a)
		}
	}
	server.Bob().Post(t, paused.Continue(harness.Echo)).Completes(t, "{} 0\n")
	server.Bob().Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
}

// TestSignalsToTheGroup signals the process group where each sandbox is a user of its own.
func TestSignalsToTheGroup(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) { strikesAlone(t, harness.Serve(t, s, nil)) })
}

// TestSignalsToTheGroupOfAUser does the same where all sandboxes run as one user, whose processes
// may signal each other.
func TestSignalsToTheGroupOfAUser(t *testing.T) {
	t.Parallel()
	all := harness.Common
	if os.Geteuid() == 0 {
		all = harness.With(harness.Common, harness.Settings{harness.RunAs: harness.Nobody})
	}
	s, err := harness.StartServer(all)
	if err != nil {
		t.Fatal(err)
	}
	harness.StopAfter(t, s)
	strikesAlone(t, s)
	finds(t, s, `
		def write(path):
		    with open(path) as file:
		        text = file.read()
		    with open(path, "w") as file:
		        file.write(text)
		for path in ("kernel/sem", "kernel/shmall", "kernel/ns_last_pid", "fs/mqueue/msg_max", "net/ipv4/ip_forward"):
		    print(path, attempt(write, "/proc/sys/" + path))
	`, map[string]string{
		"kernel/sem": "EROFS", "kernel/shmall": "EROFS", "kernel/ns_last_pid": "EROFS", "fs/mqueue/msg_max": "EROFS", "net/ipv4/ip_forward": "EROFS",
	})
}

// TestWatchingFiles tries to watch which files others open and execute.
func TestWatchingFiles(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		finds(t, harness.Serve(t, s, nil), `
			print("init", call("inotify_init1", 0))
			print("add", call("inotify_add_watch", 5, b"/usr/bin", 0xfff))
			directory = os.open("/usr/bin", os.O_RDONLY)
			print("notify", call("fcntl", directory, 1026, 0x8000003F))
			print("lease", call("fcntl", os.open("/bin/sh", os.O_RDONLY), 1024, 0))
			# Programs that would watch look again and again.
			import subprocess
			open("log", "w").close()
			tail = subprocess.Popen(["tail", "-f", "log"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
			with open("log", "w") as log:
			    log.write("followed\n")
			print("tail", tail.stdout.readline().decode().strip())
			tail.kill()
		`, map[string]string{"init": "ENOSYS", "add": "ENOSYS", "notify": "EPERM", "lease": "EPERM", "tail": "followed"})
	})
}

// TestCountsOfTheUser tries to use up what the kernel limits for each user of the host.
func TestCountsOfTheUser(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		const waiting = `
			import signal
			signal.pthread_sigmask(signal.SIG_BLOCK, [40])
			libc.sigqueue.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
			queued = 0
			while queued < 10_000 and libc.sigqueue(os.getpid(), 40, None) == 0:
			    queued += 1
			print("queued", queued > 0, queued < 300)
		`
		holder := server.Alice().Pause(t, harness.Program{Code: harness.Py(system) + harness.Py(waiting) + "print('held', await ask())", Tools: harness.Tools("ask")})
		finds(t, server, `
			print("timer", call("timer_create", 0, None, ctypes.byref(ctypes.c_long())))
			print("queue", call("mq_open", b"x", 0o102, 0o600, None))
			print("filter", call("seccomp", 2, 0, 0))
			import signal, subprocess
			print("own-timer", subprocess.run(["timeout", "0.1", "sleep", "60"]).returncode)
			print("huge", attempt(__import__("mmap").mmap, -1, 2 << 20, 0x40022))
			print("core", resource.getrlimit(resource.RLIMIT_CORE))
			print("core-0", call("prlimit64", 0, 4, ctypes.byref((ctypes.c_ulong * 2)(0, 1)), None))
			print("limit", attempt(resource.setrlimit, resource.RLIMIT_AS, (8 << 30, 8 << 30)))
			if os.fork() == 0:
			    os.abort()
			os.wait()
			print("left", os.listdir())
		`, map[string]string{
			"timer": "ENOSYS", "queue": "EPERM", "filter": "ENOSYS", "own-timer": "124", "huge": "EPERM",
			"core": "(1, 1)", "core-0": "EPERM", "limit": "done", "left": "[]",
		})
		if !s.Docker() && os.Geteuid() == 0 {
			// Each sandbox runs as another user of the host, so a second one has its own limit.
			finds(t, server, waiting, map[string]string{"queued": "True True"})
		}
		server.Alice().Post(t, holder.Continue(harness.Echo)).Completes(t, "queued True True\nheld {}\n")
	})
}

// TestSocketMemory fills the buffers of many connections, which are memory of the kernel.
func TestSocketMemory(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		found := finds(t, harness.Serve(t, s, harness.Settings{"MEMORY": "256MiB"}), `
			def pages():
			    with open("/proc/net/sockstat") as file:
			        return next(int(line.split()[-1]) for line in file if line.startswith("TCP:"))
			listener = socket.create_server(("127.0.0.1", 0))
			before, kept = pages(), []
			for _ in range(240):
			    kept.append(socket.create_connection(listener.getsockname()))
			    kept.append(listener.accept()[0])
			    for end in kept[-2:]:
			        end.setblocking(False)
			        try:
			            while True:
			                end.send(bytes(1 << 16))
			        except OSError:
			            pass
			print("held", (pages() - before) * os.sysconf("SC_PAGESIZE") >> 20)
			for end in kept:
			    end.close()
			one, other = socket.create_connection(listener.getsockname()), listener.accept()[0]
			one.sendall(b"still")
			print("works", other.recv(10))
		`, map[string]string{"works": "b'still'"})
		// The number counts the whole machine, on which other tests run.
		if held, err := strconv.Atoi(found["held"]); err != nil || held > 320 {
			t.Errorf("%s MiB of buffers, want no more than 320", found["held"])
		}
	})
}

// TestSupervisorIsOutOfReach tries to change the limits, the priority and the processors of the
// supervisor, which runs as the same user as the program.
func TestSupervisorIsOutOfReach(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		finds(t, harness.Serve(t, s, nil), `
			limit = (ctypes.c_ulong * 2)(1 << 20, 1 << 20)
			print("limit", call("prlimit64", 1, 9, ctypes.byref(limit), None))
			print("read", call("prlimit64", 1, 9, None, ctypes.byref(limit)))
			print("affinity", call("sched_setaffinity", 1, 8, ctypes.byref(ctypes.c_long(1))))
			print("scheduler", call("sched_setscheduler", 1, 5, ctypes.byref(ctypes.c_long(0))))
			print("priority", call("setpriority", 0, 1, 19))
			print("of-all", call("setpriority", 2, 0, 19))
			print("io", call("ioprio_set", 1, 1, 0))
			print("own-limit", attempt(resource.setrlimit, resource.RLIMIT_NOFILE, (512, 512)))
			print("own-affinity", attempt(os.sched_setaffinity, 0, os.sched_getaffinity(0)))
			print("own-scheduler", attempt(os.sched_setscheduler, 0, os.SCHED_BATCH, os.sched_param(0)))
			before = os.nice(0)
			print("nice", os.nice(3) - before)
			import multiprocessing
			with multiprocessing.get_context("fork").Pool(2) as pool:
			    print("pool", pool.map(abs, [-1, -2]))
		`, map[string]string{
			"limit": "EPERM", "read": "EPERM", "affinity": "EPERM", "scheduler": "EPERM", "priority": "EPERM", "of-all": "EPERM", "io": "EPERM",
			"own-limit": "done", "own-affinity": "done", "own-scheduler": "done", "nice": "3", "pool": "[1, 2]",
		})
	})
}

// TestSharedInodes tries to change the times of device files that all sandboxes share, and to
// keep the disks busy.
func TestSharedInodes(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		want := map[string]string{"write": "1", "fsync": "0", "sync": "0", "syncfs": "0", "bytes": "4"}
		for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
			if !s.Docker() { // there these are files of the container's own
				want[name] = "EROFS"
			}
		}
		finds(t, harness.Serve(t, s, nil), `
			for name in ("null", "zero", "full", "random", "urandom"):
			    print(name, attempt(os.utime, "/dev/" + name))
			print("write", os.write(os.open("/dev/null", os.O_WRONLY), b"x"))
			print("bytes", len(os.read(os.open("/dev/urandom", os.O_RDONLY), 4)))
			# The kernel has not even looked at the descriptor.
			print("fsync", call("fsync", 1000))
			print("syncfs", call("syncfs", 1000))
			print("sync", call("sync"))
		`, want)
	})
}

// TestSocketKinds opens sockets of rare kinds, for which the kernel would load modules.
func TestSocketKinds(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		finds(t, harness.Serve(t, s, nil), `
			kinds = {
			    "multipath": (2, 1, 262), "udplite": (2, 2, 136), "sctp": (2, 1, 132), "dccp": (2, 6, 33), "l2tp": (2, 2, 115), "smc": (2, 1, 256),
			    "ping": (2, 2, 1), "raw": (2, 3, 1), "packets": (2, 5, 0), "unknown": (2, 1, 200), "mixed": (2, 1, 17), "unix-1": (1, 1, 1), "raw-6": (10, 3, 58),
			    "stream": (2, 1, 0), "tcp": (2, 1, 6), "datagram": (2, 2, 0), "udp": (2, 2, 17), "tcp-6": (10, 1, 6), "udp-6": (10, 2, 17), "unix": (1, 1, 0), "unix-datagram": (1, 2, 0),
			}
			for name, kind in kinds.items():
			    fd = call("socket", *kind)
			    print(name, fd if isinstance(fd, str) else "done")
			print("pair", attempt(socket.socketpair))
		`, map[string]string{
			"multipath": "EPERM", "udplite": "EPERM", "sctp": "EPERM", "dccp": "EPERM", "l2tp": "EPERM", "smc": "EPERM", "ping": "EPERM", "raw": "EPERM",
			"packets": "EPERM", "unknown": "EPERM", "mixed": "EPERM", "unix-1": "EPERM", "raw-6": "EPERM", "stream": "done", "tcp": "done", "datagram": "done",
			"udp": "done", "tcp-6": "done", "udp-6": "done", "unix": "done", "unix-datagram": "done", "pair": "done",
		})
	})
}

// TestProcTellsOfNoHost reads everything in /proc: it must not tell about the machine.
func TestProcTellsOfNoHost(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		found := finds(t, harness.Serve(t, s, nil), `
			shown = {"cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version", "self", "thread-self", "net", "mounts", "sys", "sysvipc",
			         "execdomains", "key-users", "keys", "misc"}
			told = []
			for name in os.listdir("/proc"):
			    try:
			        path = "/proc/" + name
			        if not name.isdigit() and name not in shown and (os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)):
			            told.append(name)
			    except OSError:
			        pass
			print("told", told)
			print("boot", repr(open("/proc/sys/kernel/random/boot_id").read()))
			for name in ("cpuinfo", "meminfo", "stat", "uptime", "loadavg", "version", "filesystems", "self/status", "sys/kernel/random/uuid", "sys/kernel/pid_max", "net/dev"):
			    print(name, len(open("/proc/" + name).read()) > 0)
			busy = open("/proc/loadavg").read().split()[:3] + open("/proc/uptime").read().split()[1:]
			busy += [number for line in open("/proc/stat") if line.startswith(("cpu", "ctxt", "intr")) for number in line.split()[1:]]
			print("busy", any(map(float, busy)), "processors", os.cpu_count() > 0)
			def write(path):
			    with open(path) as file:
			        text = file.read()
			    with open(path, "w") as file:
			        file.write(text)
			print("write", attempt(write, "/proc/sys/kernel/ns_last_pid"))
		`, map[string]string{
			"told": "[]", "boot": "''", "cpuinfo": "True", "meminfo": "True", "stat": "True", "uptime": "True", "loadavg": "True", "version": "True",
			"filesystems": "True", "self/status": "True", "sys/kernel/random/uuid": "True", "sys/kernel/pid_max": "True", "net/dev": "True",
		})
		// Docker has no files to put in the place of these.
		if got := found["busy"]; !s.Docker() && got != "False processors True" {
			t.Errorf("whether the machine seems busy: %s", got)
		}
		if got := found["write"]; got != "EROFS" && got != "EACCES" {
			t.Errorf("writing a setting of the kernel: %s, want EROFS", got)
		}
	})
}

// TestRunnerTellsOfNoHost searches everything that a program can reach in its own process for
// paths of the host and for the runner's settings.
func TestRunnerTellsOfNoHost(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		finds(t, server, fmt.Sprintf(`
			needle = "".join(reversed(%q))
			hits = []
			frame = sys._getframe().f_back
			while frame:
			    for name, value in {**frame.f_locals, "code": frame.f_code.co_filename}.items():
			        try:
			            text = str(value)
			        except AttributeError:  # an empty configuration has no text
			            continue
			        # What is left are the program and its own names.
			        if name not in ("payload", "frame", "request", "namespace") and (needle in text or "first_user=" in text):
			            hits.append("variable " + name)
			        if name == "statuses" and value:
			            hits.append("other workers")
			    frame = frame.f_back
			for name, module in list(sys.modules.items()):
			    for key, value in list(vars(module).items()):
			        if key.startswith("__") and needle in str(value):
			            hits.append(f"module {name}.{key}")
			    if name == "fermata.zygote":
			        hits.append("module " + name)
			for path in ("mountinfo", "maps", "cmdline", "environ"):
			    with open("/proc/self/" + path) as file:
			        if needle in file.read():
			            hits.append(path)
			print("hits", hits)
			print("path", [path for path in sys.path + sys.orig_argv if needle in path])
		`, reversed(filepath.Dir(server.Settings["STATE_DIR"]))), map[string]string{"hits": "[]", "path": "[]"})
	})
}

// TestRandomSeeds checks that each process has random seeds of its own, which cannot be guessed.
func TestRandomSeeds(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, s.Libraries()).Alice()
		const code = `
			import multiprocessing
			print("key", multiprocessing.current_process().authkey.hex())
			first, second = (int(word) for word in np.random.get_state()[1][:2])
			print("first", first)
			# A state that was worked out of a number of 32 bits begins so.
			print("guessed", second == (1812433253 * (first ^ (first >> 30)) + 1) & 0xFFFFFFFF)
		`
		one, other := report(t, c, code), report(t, c, code)
		for _, name := range []string{"key", "first"} {
			if one[name] == "" || one[name] == other[name] {
				t.Errorf("%s: two programs have %q and %q", name, one[name], other[name])
			}
		}
		if one["guessed"] != "False" {
			t.Errorf("guessed: %s", one["guessed"])
		}
	})
}

// TestEditableInstalls installs a project as pip install -e does. Programs must not see its
// directory, which may contain anything.
func TestEditableInstalls(t *testing.T) {
	t.Parallel()
	// Not below /tmp, since programs see nothing of that anyway.
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	project, err := os.MkdirTemp(home, "fermata-tests-") //nolint:usetesting // not below /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(project); err != nil {
			t.Error(err)
		}
	})
	version, err := exec.Command(harness.Python(), "-c", "import os, sys; print(*sys.version_info[:2], sep='.'); print(os.path.dirname(sys.executable)); print(sys.executable)").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := strings.Fields(string(version))
	venv := filepath.Join(project, "venv")
	packages := filepath.Join(venv, "lib", "python"+found[0], "site-packages")
	app := filepath.Join(project, "app")
	for _, dir := range []string{packages, filepath.Join(venv, "bin"), app} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		filepath.Join(venv, "pyvenv.cfg"):       "home = " + found[1] + "\ninclude-system-site-packages = true\n",
		filepath.Join(packages, "app.pth"):      app + "\n",
		filepath.Join(packages, "installed.py"): "",
		filepath.Join(app, "editable.py"):       "",
		filepath.Join(app, ".env"):              "SECRET=1",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(found[2], filepath.Join(venv, "bin", "python3")), os.Chmod(project, 0o755)); err != nil {
		t.Fatal(err)
	}
	server := harness.ServeAlone(t, harness.ProcessSetup(), harness.Settings{"PYTHON": filepath.Join(venv, "bin", "python3")})
	finds(t, server, fmt.Sprintf(`
		import importlib.util, subprocess
		app = "".join(reversed(%q))
		print("seen", os.path.exists(app), os.path.exists(app + "/.env"), app in sys.path)
		print("installed", importlib.util.find_spec("installed") is not None)
		print("editable", importlib.util.find_spec("editable") is not None)
		script = "python3 -c 'import installed; print(1)'"
		print("processes", subprocess.run(["sh", "-c", script], capture_output=True, text=True).stdout.strip())
	`, reversed(app)), map[string]string{"seen": "False False False", "installed": "True", "editable": "False", "processes": "1"})
	if log := server.Log.All(); !strings.Contains(log, app) || !strings.Contains(log, "pip install -e") {
		t.Error("the log does not say what programs cannot import")
	}
}
