//go:build linux

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
	"time"
)

// An interpreter is a Python that is recent enough for the runner.
type interpreter struct {
	path    string
	version string
}

// Oldest minor version of Python 3 that the runner works with.
const oldestPython = 11

// pythonTimeout bounds the start of an interpreter.
const pythonTimeout = 8 * time.Second

// findPython finds the interpreter behind a name, which may be a wrapper such as
// those of version managers.
func findPython(ctx context.Context, name string) (interpreter, error) {
	asking, cancel := context.WithTimeout(ctx, pythonTimeout)
	defer cancel()
	cmd := exec.CommandContext(asking, name, "-I", "-c",
		`import sys; print(sys.executable, *sys.version_info[:3], sep="\n")`)
	// A process that a wrapper has started may keep the pipe open.
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if asking.Err() != nil && ctx.Err() == nil {
		return interpreter{}, fmt.Errorf("run Python interpreter %q: it does not start within %s, which a "+
			"sitecustomize or a .pth file of its site-packages may cause", name, pythonTimeout)
	}
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
	return fmt.Errorf("%w\nThis machine does not let the server isolate programs with namespaces. A way on: %s. "+
		"`fermata check` tells what else this machine has", err, wayToNamespaces())
}

// wayToCgroups tells an operator how the server can come to make cgroups.
const wayToCgroups = "put `systemd-run --user --scope -p Delegate=yes` before the command, in a session of systemd with cgroup " +
	"version 2, or have a unit of systemd with Delegate=yes, or run the server as root, or use Docker with FERMATA_SANDBOX=docker, " +
	"or, for your own programs only, set FERMATA_CGROUPS=optional"

// explainCgroups adds to an error of cgroups what an operator can do about it.
func (o Options) explainCgroups(err error) error {
	return fmt.Errorf("%w\nThis server may not make cgroups. Any one of these is a way on: %s. Without cgroups %s",
		err, wayToCgroups, o.withoutCgroups())
}

// withoutCgroups says what a program may use where no cgroups limit it.
func (o Options) withoutCgroups() string {
	const mib = 1 << 20
	return fmt.Sprintf("the limit on memory holds for each process and not for a program, which so has %d × %d MiB, "+
		"and 3 × %d MiB of files in memory besides; nothing limits its processor time", o.PIDs, o.Memory/mib, o.Disk/mib)
}

// A tail logs the lines that are written to it, and remembers the last one.
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
			// A process that never ends its line must not fill the server's memory.
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
