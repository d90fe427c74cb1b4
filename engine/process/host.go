//go:build linux

package process

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
)

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
