package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// FiveRounds runs a program of five rounds whose variables, calls and file all have to do with
// i. It fails if the program meets the values of another execution.
func FiveRounds(ctx context.Context, c Client, i int) error {
	a, err := c.Send(ctx, Program{Code: fmt.Sprintf(Py(`
		me, heard = %d, []
		open("mine", "w").write(str(me))
		for n in range(5):
		    heard.append((await ask(me=me, n=n))["me"])
		print(me, heard, open("mine").read())
	`), i), Tools: Tools("ask")})
	for n := 0; err == nil && a.Status == "tool_call_required"; n++ {
		if got, want := a.Calls[0].CompactInput(), fmt.Sprintf(`{"me":%d,"n":%d}`, i, n); len(a.Calls) != 1 || got != want {
			return fmt.Errorf("calls = %v, want one with %s", a.Calls, want)
		}
		a, err = c.Send(ctx, a.Continue(Echo))
	}
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("%[1]d [%[1]d, %[1]d, %[1]d, %[1]d, %[1]d] %[1]d\n", i); a.Stdout != want {
		return fmt.Errorf("got %v, want %q", a, want)
	}
	return nil
}

// A Usage is what a server takes of the machine.
type Usage struct {
	// Processes counts the server and everything below it, Groups the cgroups of its sandboxes,
	// Files the files in its directory.
	Processes, Groups, Files int
	// Descriptors counts those of the server itself, Inner those of the processes below it.
	Descriptors, Inner int
	// Memory is the resident memory of the server itself, in bytes.
	Memory int
}

// Usage measures what the server takes of the machine now.
func (s *Server) Usage() Usage {
	family := s.Family()
	u := Usage{Processes: len(family), Groups: len(SandboxGroups(s.Groups))}
	_ = filepath.WalkDir(s.Dir, func(path string, _ os.DirEntry, _ error) error { // Files may vanish meanwhile.
		if path == s.filesDir() {
			return filepath.SkipDir // Files that programs leave are kept for a day.
		}
		u.Files++
		return nil
	})
	for i, p := range family {
		open, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID)) // The process may have ended.
		if i == 0 {
			u.Descriptors = len(open)
		} else {
			u.Inner += len(open)
		}
	}
	u.Memory, _ = s.memory("VmRSS") // 0 if the server has ended.
	return u
}

// PeakMemory returns the highest resident memory of the server so far, in bytes.
func (s *Server) PeakMemory(t testing.TB) int {
	t.Helper()
	bytes, err := s.memory("VmHWM")
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// ResidentMiB returns the resident memory of the server, in MiB.
func (s *Server) ResidentMiB(t testing.TB) int {
	t.Helper()
	bytes, err := s.memory("VmRSS")
	if err != nil {
		t.Fatal(err)
	}
	return bytes >> 20
}

// AnonymousMiB returns the resident memory of the server without the files that it maps, which the
// kernel may take back, in MiB.
func (s *Server) AnonymousMiB(t testing.TB) int {
	t.Helper()
	bytes, err := s.memory("RssAnon")
	if err != nil {
		t.Fatal(err)
	}
	return bytes >> 20
}

// memory returns a value of memory in /proc/PID/status of the server, in bytes.
func (s *Server) memory(name string) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kilobytes, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no %s", s.Cmd.Process.Pid, name)
}
