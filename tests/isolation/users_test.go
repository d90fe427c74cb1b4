package isolation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// asOrdinary runs test with a server of an ordinary user, once without other users for its
// sandboxes and once with a range of them. Its limits on descriptors are those of many machines.
func asOrdinary(t *testing.T, test func(t *testing.T, s *harness.Server)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("becomes other users, which takes root")
	}
	t.Parallel()
	for _, user := range []string{harness.Nobody, harness.NobodyWithRange} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			s, err := harness.NewServer(harness.With(harness.Common, harness.Quick(t), harness.Settings{harness.RunAs: user}))
			if err != nil {
				t.Fatal(err)
			}
			s.Become = append([]string{"prlimit", "--nofile=1024:4096", "--"}, s.Become...)
			if err := s.Start(); err != nil {
				t.Fatal(err)
			}
			harness.StopAfter(t, s)
			test(t, s)
		})
	}
}

// forks is a program that needs processes, threads and descriptors.
var forks = harness.Program{Code: harness.Py(`
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
`), Tools: harness.Tools("ask")}

// goesOn checks that a client's programs run undisturbed.
func goesOn(t *testing.T, c harness.Client) {
	t.Helper()
	// More programs than there are idle sandboxes.
	for range 6 {
		a := c.Pause(t, forks)
		c.Post(t, a.Continue(harness.Echo)).Completes(t, "20\n{}\n")
	}
}

// TestManyProcessesOfOneUser uses up the processes that one sandbox may have; other sandboxes
// still have theirs.
func TestManyProcessesOfOneUser(t *testing.T) {
	asOrdinary(t, func(t *testing.T, s *harness.Server) {
		a := s.Alice().Pause(t, harness.Program{Code: harness.Py(`
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
		`), Tools: harness.Tools("ask")})
		goesOn(t, s.Bob())
		s.Alice().Post(t, a.Continue(harness.Echo)).Completes(t, "True True\n")
	})
}

// TestManyPausedProgramsOfOneUser pauses more programs than one program may have processes.
func TestManyPausedProgramsOfOneUser(t *testing.T) {
	asOrdinary(t, func(t *testing.T, s *harness.Server) {
		for range 70 {
			s.Alice().Pause(t, harness.Program{Code: "await ask()", Tools: harness.Tools("ask")})
		}
		goesOn(t, s.Bob())
	})
}

// TestDescriptorsInFlightOfOneUser keeps as many descriptors in flight as the kernel allows.
func TestDescriptorsInFlightOfOneUser(t *testing.T) {
	asOrdinary(t, func(t *testing.T, s *harness.Server) {
		a := s.Alice().Pause(t, harness.Program{Code: harness.Py(`
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
		`), Tools: harness.Tools("ask")})
		goesOn(t, s.Bob())
		s.Alice().Post(t, a.Continue(harness.Echo)).Completes(t, strings.Repeat("Too many references: cannot splice\n", 2))
	})
}

// TestEpollOfOneUser checks that programs do without epoll where all sandboxes run as the
// server's user: the kernel limits epoll watches for each user, and a server that gets none ends.
func TestEpollOfOneUser(t *testing.T) {
	asOrdinary(t, func(t *testing.T, s *harness.Server) {
		c := s.Alice()
		a := c.Post(t, harness.Program{Code: harness.Py(`
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
		if s.RunsAs == harness.Nobody {
			with = "Function not implemented\nFalse\nPollSelector\n"
		}
		a.Completes(t, with+"over a socket\nof a child\n")
		goesOn(t, s.Bob())
	})
}

// TestOrdinaryUser runs the server as a user without any rights, not even cgroups: programs are
// isolated and limited all the same.
func TestOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("every other test runs as an ordinary user here")
	}
	t.Parallel()
	s, err := harness.NewServer(harness.With(harness.Common, harness.Settings{"MEMORY": "256MiB", "PIDS": "32", "CGROUPS": "optional", harness.RunAs: harness.Nobody}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveGroups(); err != nil {
		t.Fatal(err)
	}
	s.Groups = nil
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	harness.StopAfter(t, s)
	c := s.Alice()

	c.Pause(t, harness.Program{Code: "print(await ask())", Tools: harness.Tools("ask")})
	a := c.Post(t, harness.Program{Code: harness.Py(`
		import os
		status = dict(line.split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
		print(os.getuid(), status["CapEff"].strip(), status["NoNewPrivs"].strip(), status["Seccomp"].strip())
		print(sorted(os.listdir("/sys/class/net")) if os.path.exists("/sys") else "no /sys")
	`)})
	a.Completes(t, "1000 0000000000000000 1 2\nno /sys\n")
	c.Post(t, harness.Program{Code: "x = bytearray(300 << 20)"}).Fails(t, 200, "Out of memory")
	a = c.Post(t, harness.Program{Code: harness.Py(`
		import os, time
		children = 0
		try:
		    while True:
		        if os.fork() == 0:
		            time.sleep(60)
		        children += 1
		except BlockingIOError:
		    print("stopped", children <= 32)
	`)})
	a.Completes(t, "stopped True\n")
	if file := filepath.Join(s.Dir, "state", "secret"); c.Post(t, harness.Program{Code: "print(open('" + file + "').read())"}).Stdout != "" {
		t.Error("a program has read the server's secret")
	}
	if !strings.Contains(s.Log.Tail(), "no cgroup limits") {
		t.Error("the log does not say that there are no cgroups")
	}
}
