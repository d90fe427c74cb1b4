package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// An interpreter is a Python that can run the runner.
type interpreter struct {
	path    string
	version string
}

// Oldest minor version of Python 3 that the runner works with.
const oldestPython = 11

// findPython finds the interpreter behind a name, which may be a wrapper such as
// those of version managers.
func findPython(ctx context.Context, name string) (interpreter, error) {
	out, err := exec.CommandContext(ctx, name, "-I", "-c",
		`import sys; print(sys.executable, *sys.version_info[:3], sep="\n")`).Output()
	if err != nil {
		return interpreter{}, fmt.Errorf("run Python interpreter %q: %w", name, err)
	}
	lines := strings.Fields(string(out))
	if len(lines) != 4 {
		return interpreter{}, fmt.Errorf("%q is not a Python interpreter", name)
	}
	found := interpreter{path: lines[0], version: strings.Join(lines[1:], ".")}
	if minor, err := strconv.Atoi(lines[2]); err != nil || lines[1] != "3" || minor < oldestPython {
		return interpreter{}, fmt.Errorf("%s is Python %s, 3.%d or later is needed", found.path, found.version, oldestPython)
	}
	return found, nil
}

// explain adds to an error of isolation what an operator can do about it.
func explain(err error) error {
	if !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.ENOSPC) && !strings.Contains(err.Error(), "PermissionError") {
		return err
	}
	return fmt.Errorf("%w\nThis machine does not let the server isolate programs with namespaces. "+
		"Any one of these is a way on: run the server as root; let users make namespaces "+
		"(sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces=10000, "+
		"kernel.apparmor_restrict_unprivileged_userns=0, whichever this system has); "+
		"in a container, allow CAP_SYS_ADMIN and an unmasked /proc", err)
}

// explainCgroups adds to an error of cgroups what an operator can do about it, and what it
// means to go without them.
func (o Options) explainCgroups(err error) error {
	const mib = 1 << 20
	return fmt.Errorf("%w\nThis server may not make cgroups, without which a program uses what it likes. "+
		"Any one of these is a way on: put `systemd-run --user --scope -p Delegate=yes` before the command, in a session of "+
		"systemd with cgroup version 2; a unit of systemd with Delegate=yes; run the server as root; Docker, with "+
		"FERMATA_SANDBOX=docker; or, for your own programs only, FERMATA_CGROUPS=optional: then the limit on memory holds for "+
		"each process instead of each program, which has %d × %d MiB so, and 3 × %d MiB of files in memory besides; "+
		"nothing limits its processor time", err, o.PIDs, o.Memory/mib, o.Disk/mib)
}

// A tail logs lines and remembers the last one.
type tail struct {
	log *slog.Logger

	mu      sync.Mutex
	partial []byte
	line    string
}

// Write takes the next bytes of a process's stderr.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.partial = append(t.partial, p...)
	for {
		line, rest, ok := bytes.Cut(t.partial, []byte("\n"))
		if !ok {
			// A process that writes no line ends is not to fill our memory.
			t.partial = t.partial[max(0, len(t.partial)-4096):]
			return len(p), nil
		}
		t.line, t.partial = string(line), rest
		t.log.Warn("sandbox process said", "line", t.line)
	}
}

func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.line
}
