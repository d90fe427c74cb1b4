//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// controllers are the cgroup controllers that bound a program.
var controllers = []string{"cpu", "memory", "pids"}

const cpuPeriod = 100_000 // microseconds, the kernel's default

// socketMemory bounds what the buffers of a program's IP sockets hold in version 1, where they
// do not count as memory.
const socketMemory = 32 << 20

// cgroups makes a group for each program, in one hierarchy (version 2) or in one
// for each controller (version 1). A nil *cgroups makes none.
type cgroups struct {
	// parents are the directories that groups are made in. They stay: another server
	// on the machine may be about to use them.
	parents []string
	// settings are the files of each group by the parent, and their contents.
	settings map[string][]setting
	// join is the file by which a process joins a group.
	join string
	// oom is the parent whose groups count the kills for memory, oomFile the file with the count.
	oom, oomFile string
	// freezer is the parent whose groups can be frozen, or empty.
	freezer string
}

type setting struct {
	file, value string
	// optional settings are not there on every kernel.
	optional bool
}

func (c *cgroups) limitsMemory() bool { return c != nil }

// A cgroup is the open ends of one program's group.
type cgroup struct {
	files []groupFile
}

// A groupFile is an open file of a group. Its name is for the zygote: "join" is the file by
// which a process joins the group, "oom" counts kills for memory; the freezer's files keep
// their own names.
type groupFile struct {
	*os.File

	name string
}

func (g *cgroup) open(name, path string, flag int) error {
	file, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return fmt.Errorf("open cgroup: %w", err)
	}
	g.files = append(g.files, groupFile{file, name})
	return nil
}

func (g *cgroup) close() {
	for _, f := range g.files {
		_ = f.Close()
	}
}

// The files by which groups are frozen. In version 1 a frozen process that is killed dies only
// when it is thawed.
const (
	freezeFile, frozenFile = "cgroup.freeze", "cgroup.events"
	freezeFile1            = "freezer.state"
)

// openFreezer opens what freezes the group in dir, if it can be frozen.
func (g *cgroup) openFreezer(dir string) error {
	err := g.open(freezeFile1, filepath.Join(dir, freezeFile1), os.O_RDWR)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = g.open(freezeFile, filepath.Join(dir, freezeFile), os.O_WRONLY)
	if err == nil {
		err = g.open(frozenFile, filepath.Join(dir, frozenFile), os.O_RDONLY)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // Linux before 5.2
	}
	return err
}

// create makes the group of the sandbox with this name.
func (c *cgroups) create(name string) (_ *cgroup, err error) {
	g := &cgroup{}
	if c == nil {
		return g, nil
	}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	for _, parent := range c.parents {
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make cgroup: %w", err)
		}
		for _, s := range c.settings[parent] {
			err := os.WriteFile(filepath.Join(dir, s.file), []byte(s.value), 0)
			if s.optional && errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("limit cgroup: %w", err)
			}
		}
		if err := g.open("join", filepath.Join(dir, c.join), os.O_WRONLY); err != nil {
			return nil, err
		}
	}
	if err := g.open("oom", filepath.Join(c.oom, name, c.oomFile), os.O_RDONLY); err != nil {
		return nil, err
	}
	if c.freezer != "" {
		if err := g.openFreezer(filepath.Join(c.freezer, name)); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// thaw lets those processes of a sandbox die that were killed while they were frozen. In
// version 2 they die by themselves. It is no error if there are none.
func (c *cgroups) thaw(name string) {
	if c != nil && c.freezer != "" {
		_ = os.WriteFile(filepath.Join(c.freezer, name, freezeFile1), []byte("THAWED"), 0)
	}
}

// thawInterval is how often killed processes are thawed, and the removal of their group is
// tried, until they are dead: a supervisor may freeze them again before it dies itself.
const thawInterval = 10 * time.Millisecond

// remove removes the group of a sandbox. Processes that have not ended yet are killed, and
// waited for until ctx ends.
func (c *cgroups) remove(ctx context.Context, name string) error {
	if c == nil {
		return nil
	}
	var errs []error
	for _, parent := range c.parents {
		errs = append(errs, removeGroup(ctx, filepath.Join(parent, name), func() { c.thaw(name) }))
	}
	return errors.Join(errs...)
}

// removeGroup removes a group. Processes that are still in it are killed, and thaw lets
// them die.
func removeGroup(ctx context.Context, dir string, thaw func()) error {
	for {
		err := syscall.Rmdir(dir)
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist):
			return nil
		case !errors.Is(err, syscall.EBUSY):
			return fmt.Errorf("remove cgroup %s: %w", dir, err)
		}
		pids, killErr := killGroup(dir)
		thaw()
		select {
		case <-time.After(thawInterval):
		case <-ctx.Done():
			return fmt.Errorf("remove cgroup %s, in which processes %v were killed and do not end: %w", dir, pids, errors.Join(err, killErr))
		}
	}
}

// killGroup kills the processes of a group and returns their numbers.
func killGroup(dir string) (pids []int, err error) {
	err = eachLine(filepath.Join(dir, "cgroup.procs"), func(line string) {
		// A process that cannot be seen from this PID namespace has the number 0.
		if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	})
	if os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0) == nil {
		return pids, err
	}
	// Version 1, or a kernel before 5.14.
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // It may have ended meanwhile.
	}
	return pids, err
}
