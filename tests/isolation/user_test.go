package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOrdinaryUser runs the server as a user without any rights: no cgroups are to be
// had, and programs are isolated and limited all the same.
func TestOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("every other test runs as an ordinary user here")
	}
	t.Parallel()
	s, err := newServer(with(common, settings{"MEMORY": "256MiB", "PIDS": "32", "CGROUPS": "optional", runAs: nobody}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.removeGroups(); err != nil {
		t.Fatal(err)
	}
	s.groups = nil
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	stopAfter(t, s)
	c := s.alice()

	c.pause(t, program{Code: "print(await ask())", Tools: tools("ask")})
	a := c.post(t, program{Code: py(`
		import os
		status = dict(line.split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
		print(os.getuid(), status["CapEff"].strip(), status["NoNewPrivs"].strip(), status["Seccomp"].strip())
		print(sorted(os.listdir("/sys/class/net")) if os.path.exists("/sys") else "no /sys")
	`)})
	a.completes(t, "1000 0000000000000000 1 2\nno /sys\n")
	c.post(t, program{Code: "x = bytearray(300 << 20)"}).fails(t, 200, "Out of memory")
	a = c.post(t, program{Code: py(`
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
	a.completes(t, "stopped True\n")
	if file := filepath.Join(s.dir, "state", "secret"); c.post(t, program{Code: "print(open('" + file + "').read())"}).Stdout != "" {
		t.Error("a program has read the server's secret")
	}
	if !strings.Contains(s.log.tail(), "no cgroup limits") {
		t.Error("the log does not say that there are no cgroups")
	}
}
