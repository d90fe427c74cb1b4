package tests

import (
	"os"
	"path/filepath"
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
			pairs, sent = [], 0
			for size in (250, 1):
			    try:
			        while True:
			            pairs.append(socket.socketpair())
			            socket.send_fds(pairs[-1][0], [b"x"], [0] * size)
			            sent += size
			    except OSError as error:
			        print(error.strerror)
			print(sent > 1000)
			await ask()
		`), Tools: tools("ask")})
		goesOn(t, s.bob())
		s.alice().post(t, a.answers(echo)).completes(t, strings.Repeat("Too many references: cannot splice\n", 2)+"True\n")
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
	if err := removeGroups(s.groups); err != nil {
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
