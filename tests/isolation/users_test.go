package tests

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// asOrdinary runs test with a server of an ordinary user, without users for its sandboxes
// and with a range of them. Its limits on descriptors are those of many a machine.
func asOrdinary(t *testing.T, test func(t *testing.T, s *server)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("becomes other users, which takes root")
	}
	t.Parallel()
	for _, user := range []string{nobody, nobodyWithRange} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			s, err := newServer(with(with(common, quick(t)), settings{runAs: user}))
			if err != nil {
				t.Fatal(err)
			}
			s.become = append([]string{"prlimit", "--nofile=1024:4096", "--"}, s.become...)
			if err := s.start(); err != nil {
				t.Fatal(err)
			}
			stopAfter(t, s)
			test(t, s)
		})
	}
}

// forks is a program that needs processes, threads and descriptors.
var forks = program{Code: py(`
	import threading, time
	children = []
	for _ in range(20):
	    pid = os.fork()
	    if pid == 0:
	        time.sleep(0.2)
	        os._exit(0)
	    children.append(pid)
	threads = [threading.Thread(target=time.sleep, args=(0.1,)) for _ in range(20)]
	for thread in threads: thread.start()
	for thread in threads: thread.join()
	print(sum(os.waitpid(pid, 0)[1] == 0 for pid in children))
	print(await ask())
`), Tools: tools("ask")}

// goesOn checks that a client's programs do not suffer from those of another.
func goesOn(t *testing.T, c client) {
	t.Helper()
	// More than wait in the pool.
	for range 6 {
		a := c.pause(t, forks)
		c.post(t, a.answers(echo)).completes(t, "20\n{}\n")
	}
}

// TestManyProcessesOfOneUser has one client use all the processes that its sandbox may
// have; the other's sandboxes have theirs.
func TestManyProcessesOfOneUser(t *testing.T) {
	asOrdinary(t, func(t *testing.T, s *server) {
		a := s.alice().pause(t, program{Code: py(`
			import time
			made = 0
			try:
			    while True:
			        if os.fork() == 0:
			            time.sleep(600)
			        made += 1
			except OSError:
			    print(made > 50, made < 64)
			await ask()
		`), Tools: tools("ask")})
		goesOn(t, s.bob())
		s.alice().post(t, a.answers(echo)).completes(t, "True True\n")
	})
}

// TestManyPausedProgramsOfOneUser has one client pause more programs than one of them may
// have processes.
func TestManyPausedProgramsOfOneUser(t *testing.T) {
	asOrdinary(t, func(t *testing.T, s *server) {
		for range 70 {
			s.alice().pause(t, program{Code: "await ask()", Tools: tools("ask")})
		}
		goesOn(t, s.bob())
	})
}

// TestDescriptorsInFlightOfOneUser has one client keep as many descriptors in flight as
// the kernel lets a program have.
func TestDescriptorsInFlightOfOneUser(t *testing.T) {
	asOrdinary(t, func(t *testing.T, s *server) {
		a := s.alice().pause(t, program{Code: py(`
			import socket
			pairs = []
			for size in (250, 1):
			    try:
			        while True:
			            pairs.append(socket.socketpair())
			            socket.send_fds(pairs[-1][0], [b"x"], [0] * size)
			    except OSError as error:
			        print(error.strerror)
			await ask()
		`), Tools: tools("ask")})
		goesOn(t, s.bob())
		s.alice().post(t, a.answers(echo)).completes(t, strings.Repeat("Too many references: cannot splice\n", 2))
	})
}

// TestEpollOfOneUser checks that programs do without epoll where all sandboxes have the
// server's user: its watches are counted for a user, and a server without any ends.
func TestEpollOfOneUser(t *testing.T) {
	asOrdinary(t, func(t *testing.T, s *server) {
		c := s.alice()
		a := c.post(t, program{Code: py(`
			import ctypes, select, subprocess, sys, threading
			def create():
			    try:
			        select.epoll().close()
			        return "epoll"
			    except OSError as error:
			        return error.strerror
			print(create())
			print(ctypes.CDLL(None).epoll_create(1) > 0)
			other = subprocess.run([sys.base_prefix + "/bin/python3", "-c", "import asyncio, selectors; asyncio.run(asyncio.sleep(0)); print(selectors.DefaultSelector.__name__)"], capture_output=True, text=True)
			print(other.stdout + other.stderr, end="")
			async def echo(reader, writer):
			    writer.write(await reader.readline())
			    writer.close()
			listener = await asyncio.start_server(echo, "127.0.0.1", 0)
			reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
			writer.write(b"over a socket\n")
			print((await reader.readline()).decode(), end="")
			print((await (await asyncio.create_subprocess_exec("echo", "of a child", stdout=subprocess.PIPE)).communicate())[0].decode(), end="")
		`)})
		with := "epoll\nTrue\nEpollSelector\n"
		if s.runsAs == nobody {
			with = "Function not implemented\nFalse\nPollSelector\n"
		}
		a.completes(t, with+"over a socket\nof a child\n")
		goesOn(t, s.bob())
	})
}

// TestNoCgroups checks that a server without cgroups does not start unless it is told to,
// and tells a newcomer how to go on.
func TestNoCgroups(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("becomes another user, which takes root")
	}
	t.Parallel()
	s, err := newServer(with(common, settings{runAs: nobody}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.removeGroups(); err != nil {
		t.Fatal(err)
	}
	s.groups = nil
	if err := s.launch(); err != nil {
		t.Fatal(err)
	}
	err = s.await()
	if err == nil {
		t.Fatal("a server without cgroups serves", s.stop())
	}
	for _, want := range []string{
		"may not make cgroups", "systemd-run --user --scope -p Delegate=yes", "FERMATA_SANDBOX=docker", "FERMATA_CGROUPS=optional",
		"64 × 512 MiB", "3 × 256 MiB",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the server said %q, want %q in it", err, want)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(s.dir, "state", "sandboxes")); len(left) > 0 {
		t.Errorf("%d zygotes were started", len(left))
	}
}

// runCheck runs fermata check as a server would run, and returns the state of each thing.
func (s *server) runCheck(t *testing.T) (states map[string]string, printed string, code int) {
	t.Helper()
	s.command = "check"
	if err := s.launch(); err != nil {
		t.Fatal(err)
	}
	<-s.exited
	if err := s.removeGroups(); err != nil {
		t.Error(err)
	}
	states, printed = map[string]string{}, s.log.all()
	for line := range strings.Lines(printed) {
		if f := strings.Split(strings.TrimSpace(line), "  "); len(f) > 1 {
			f = slices.DeleteFunc(f, func(cell string) bool { return cell == "" })
			states[f[0]] = strings.TrimSpace(f[1])
		}
	}
	return states, printed, s.cmd.ProcessState.ExitCode()
}

// TestCheck runs fermata check on machines that have less and less, as its user sees them.
func TestCheck(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("becomes other users, which takes root")
	}
	python, err := barePython()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		settings settings
		groups   bool
		code     int
		// states are those that are not ok.
		states map[string]string
		says   []string
	}{
		{name: "root", groups: true, says: []string{"one for each sandbox, from 200000", "user 1000, capabilities 0000000000000000, no_new_privs 1", "it may write to /dev/shm, /mnt/data, /tmp"}},
		{name: "a user with a range", groups: true, settings: settings{runAs: nobodyWithRange}, says: []string{"one for each sandbox, from 400000 to 404999"}},
		{
			name: "a user with too small a range", groups: true, settings: settings{runAs: nobodyWithRange, "MAX_SANDBOXES": "5001", "PIDS": "4"},
			states: map[string]string{"users": "weaker"}, says: []string{"5000 users and 5000 groups for nobody, 5001 of both"},
		},
		{
			name: "a user", groups: true, settings: settings{runAs: nobody},
			states: map[string]string{"users": "weaker"}, says: []string{"usermod --add-subuids"},
		},
		{
			name: "a user without cgroups", settings: settings{runAs: nobody}, code: 1,
			states: map[string]string{"users": "weaker", "cgroups": "missing", "program": "missing"},
			says:   []string{"systemd-run --user --scope -p Delegate=yes", "64 × 512 MiB", "2 are missing"},
		},
		{
			name: "a user who does without cgroups", settings: settings{runAs: nobody, "CGROUPS": "optional"},
			states: map[string]string{"users": "weaker", "cgroups": "weaker"}, says: []string{"64 × 512 MiB"},
		},
		{
			name: "settings with a mistake", groups: true, settings: settings{"PIDS": "0"}, code: 1,
			states: map[string]string{"settings": "missing"}, says: []string{"--pids must be more than 0"},
		},
		{
			name: "no Python", groups: true, settings: settings{"PYTHON": "/usr/bin/python9"}, code: 1,
			states: map[string]string{"Python": "missing", "program": "missing"}, says: []string{"set FERMATA_PYTHON"},
		},
		{
			name: "no Docker", settings: settings{"SANDBOX": "docker"}, code: 1,
			states: map[string]string{"Docker": "missing", "program": "missing"}, says: []string{"set DOCKER_HOST"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := newServer(with(with(common, settings{"PYTHON": python}), c.settings))
			if err != nil {
				t.Fatal(err)
			}
			s.dockerHost = "unix://" + filepath.Join(s.dir, "no.sock")
			if !c.groups {
				if err := s.removeGroups(); err != nil {
					t.Fatal(err)
				}
				s.groups = nil
			}
			states, printed, code := s.runCheck(t)
			if code != c.code {
				t.Errorf("the exit code is %d, want %d", code, c.code)
			}
			ordinary := []string{"libraries", "limit on swap", "lines", "freezer", "core dumps", "descriptors", "processes"}
			for _, what := range slices.Sorted(maps.Keys(states)) {
				// What this machine has of these is not the server's.
				if want := c.states[what]; states[what] != "ok" && want == "" && !slices.Contains(ordinary, what) {
					t.Errorf("%s is %s, want ok", what, states[what])
				}
			}
			for what, want := range c.states {
				if states[what] != want {
					t.Errorf("%s is %q, want %s", what, states[what], want)
				}
			}
			for _, part := range c.says {
				if !strings.Contains(printed, part) {
					t.Errorf("%q is not said", part)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(s.dir, "*", "*")); len(left) > 0 {
				t.Errorf("%q are left", left)
			}
			if t.Failed() {
				t.Log(printed)
			}
		})
	}
}

// TestCheckDocker runs fermata check for containers.
func TestCheckDocker(t *testing.T) {
	t.Parallel()
	needDocker(t)
	for _, c := range []struct {
		name, image string
		code        int
		says        string
	}{
		{"an image", plainImage, 0, "user 1000, capabilities 0000000000000000, no_new_privs 1"},
		{"no image", "fermata-tests-none", 1, "docker build --target sandbox -t fermata-tests-none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := newServer(with(with(common, dockerSettings), settings{"DOCKER_IMAGE": c.image}))
			if err != nil {
				t.Fatal(err)
			}
			states, printed, code := s.runCheck(t)
			if code != c.code || states["Docker"] != "ok" || !strings.Contains(printed, c.says) {
				t.Errorf("the exit code is %d, want %d and %q in\n%s", code, c.code, c.says, printed)
			}
			if left, err := s.containers(t.Context()); err != nil || len(left) > 0 {
				t.Errorf("%d containers are left, %v, want none", len(left), err)
			}
		})
	}
}
