package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// controllers are the cgroup controllers that bound a program.
var controllers = []string{"cpu", "memory", "pids"}

const cpuPeriod = 100_000 // microseconds, the kernel's default

// socketMemory bounds what the buffers of a program's IP sockets hold, where that does not
// count as memory: in version 1.
const socketMemory = 32 << 20

// cgroups makes a group for each program, in one hierarchy (version 2) or in one
// for each controller (version 1). A nil *cgroups makes none.
type cgroups struct {
	// parents are the directories that groups are made in. They stay: another server
	// on the machine may be about to use them.
	parents []string
	// settings are the files of each group by the parent, and their contents.
	settings map[string][]setting
	// join is the file of a group that a process joins it by.
	join string
	// oom is the parent whose groups count kills for memory, and the file that does.
	oom, oomFile string
	// freezer is the parent whose groups can be frozen, or empty.
	freezer string
}

type setting struct {
	file, value string
	// optional settings are not there on every kernel.
	optional bool
}

// A cgroup is the open ends of one program's group.
type cgroup struct {
	files []groupFile
}

// A groupFile is an open file of a group. The name is for the zygote: "join" is what a
// process joins the group by, "oom" counts kills for memory; the freezer's keep theirs.
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

// The files by which groups are frozen: of version 2, and of version 1, whose frozen
// processes do not even die.
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

// findCgroups finds where this server may make groups. It returns nil and the
// reason if it may not.
func findCgroups(o Options) (*cgroups, error) {
	mounts, err := cgroupMounts("/proc/self")
	if err != nil {
		return nil, err
	}
	quota := strconv.Itoa(int(o.CPUs * cpuPeriod))
	memory, pids := strconv.FormatInt(o.Memory, 10), strconv.Itoa(o.PIDs)
	c := &cgroups{settings: map[string][]setting{}}
	own, ok := mounts[""]
	if unified := beforeMove(own); ok && hasControllers(unified) {
		parent := filepath.Join(unified, parentGroup)
		if err := delegate(unified, parent); err != nil {
			return nil, err
		}
		c.parents, c.join = []string{parent}, "cgroup.procs"
		c.oom, c.oomFile = parent, "memory.events"
		c.freezer = parent
		c.settings[parent] = []setting{
			{file: "memory.max", value: memory},
			{file: "memory.swap.max", value: "0", optional: true},
			{file: "pids.max", value: pids},
			{file: "cpu.max", value: quota + " " + strconv.Itoa(cpuPeriod)},
		}
	} else {
		// For a thread that moves itself the kernel need not stop all others, which
		// takes it some ten milliseconds; the worker has one thread.
		c.join = "tasks"
		version1 := map[string][]setting{
			"cpu": {{file: "cpu.cfs_quota_us", value: quota}},
			"memory": {
				{file: "memory.limit_in_bytes", value: memory},
				{file: "memory.memsw.limit_in_bytes", value: memory, optional: true},
				{file: "memory.kmem.tcp.limit_in_bytes", value: strconv.Itoa(socketMemory), optional: true},
			},
			"pids": {{file: "pids.max", value: pids}},
		}
		for _, name := range controllers {
			mount, ok := mounts[name]
			if !ok && own != "" {
				return nil, fmt.Errorf("the cgroup %s has not all of the controllers %s", own, strings.Join(controllers, ", "))
			}
			if !ok {
				return nil, fmt.Errorf("no cgroup controller %q", name)
			}
			parent := filepath.Join(mount, parentGroup)
			if err := os.Mkdir(parent, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, fmt.Errorf("make cgroup: %w", err)
			}
			c.parents = append(c.parents, parent)
			c.settings[parent] = version1[name]
			if name == "memory" {
				c.oom, c.oomFile = parent, "memory.oom_control"
			}
		}
		c.addFreezer(mounts["freezer"])
	}
	if c.freezer == "" {
		o.Log.Warn("no cgroup freezer: paused programs are stopped by signals, and watched")
	}
	if err := c.try(); err != nil {
		return nil, err
	}
	return c, nil
}

// addFreezer adds the hierarchy of version 1 that freezes, if this server may use it.
func (c *cgroups) addFreezer(mount string) {
	if mount == "" {
		return
	}
	parent := filepath.Join(mount, parentGroup)
	if err := os.Mkdir(parent, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return
	}
	// A server with more rights may have made it.
	if unix.Access(parent, unix.W_OK) == nil {
		c.parents, c.freezer = append(c.parents, parent), parent
	}
}

// parentGroup has the groups of programs. In version 2 serverGroup, beside it, has
// the server.
const (
	parentGroup = "fermata"
	serverGroup = "fermata-server"
)

// try makes one group and removes it: what cannot be set is found out at start.
func (c *cgroups) try() error {
	ctx, cancel := context.WithTimeout(context.Background(), clearTimeout)
	defer cancel()
	// What another server has left does not keep this one from its limits.
	_ = c.sweepTries(ctx)
	name := tryPrefix + strconv.Itoa(os.Getpid())
	group, err := c.create(name)
	if err != nil {
		return errors.Join(err, c.remove(ctx, name))
	}
	group.close()
	return c.remove(ctx, name)
}

// tryPrefix and a process id name the group that a server makes to see if it can.
const tryPrefix = "try-"

// sweepTries removes what servers left that were killed while they tried.
func (c *cgroups) sweepTries(ctx context.Context) error {
	for _, parent := range c.parents {
		left, err := filepath.Glob(filepath.Join(parent, tryPrefix+"*"))
		if err != nil {
			return err
		}
		for _, dir := range left {
			name := filepath.Base(dir)
			if _, err := os.Stat("/proc/" + strings.TrimPrefix(name, tryPrefix)); err == nil {
				continue
			}
			if err := c.remove(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *cgroups) limitsMemory() bool { return c != nil }

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

// thaw lets the processes of a sandbox die that were killed while they were frozen, which
// they do by themselves in version 2. It is no error if there are none.
func (c *cgroups) thaw(name string) {
	if c != nil && c.freezer != "" {
		_ = os.WriteFile(filepath.Join(c.freezer, name, freezeFile1), []byte("THAWED"), 0)
	}
}

// thawInterval is how often processes that were killed are thawed, and their group is tried
// to be removed, until they are dead: a supervisor may freeze them again before it dies
// itself.
const thawInterval = 10 * time.Millisecond

// remove removes the group of a sandbox whose processes have ended. Those that have not are
// killed, and waited for until ctx ends.
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

// removeGroup removes a group. While there are processes in it they are killed, and then
// let go by thaw.
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
		// One that cannot be seen from here has the number 0.
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

// cgroupMounts returns where this process's own group is, by controller; the
// unified hierarchy of version 2 has the name "". What is known of the process is
// in the directory proc.
func cgroupMounts(proc string) (map[string]string, error) {
	own := map[string]string{}
	err := eachLine(filepath.Join(proc, "cgroup"), func(line string) {
		// 4:memory:/path
		if f := strings.SplitN(line, ":", 3); len(f) == 3 {
			for name := range strings.SplitSeq(f[1], ",") {
				own[name] = f[2]
			}
		}
	})
	if err != nil {
		return nil, err
	}
	mounts := map[string]string{}
	err = eachLine(filepath.Join(proc, "mountinfo"), func(line string) {
		// 36 35 98:0 /root /mount options … - type source superoptions
		left, right, _ := strings.Cut(line, " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if len(l) < 5 || len(r) < 3 || !strings.HasPrefix(r[0], "cgroup") {
			return
		}
		if r[0] == "cgroup2" && strings.HasPrefix(l[3], "/..") {
			// It shows what is around our cgroup namespace, where no process of ours may go.
			return
		}
		names := []string{""}
		if r[0] == "cgroup" {
			names = strings.Split(r[2], ",")
		}
		for _, name := range names {
			path, ok := own[name]
			if !ok {
				continue
			}
			// In a container the mount shows a part of the hierarchy.
			if rest, err := filepath.Rel(l[3], path); err == nil && !strings.HasPrefix(rest, "..") {
				path = rest
			}
			dir := filepath.Join(l[4], path)
			if _, err := os.Stat(dir); err != nil {
				dir = l[4]
			}
			mounts[name] = dir
		}
	})
	return mounts, err
}

func eachLine(path string, f func(line string)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		f(lines.Text())
	}
	return lines.Err()
}

// hasControllers reports whether a group of version 2 has all that we need.
func hasControllers(dir string) bool {
	have, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(controllers, func(name string) bool {
		return !slices.Contains(strings.Fields(string(have)), name)
	})
}

// beforeMove returns the group to make groups in, by the one that the server is in. One
// that delegate moved, with the shell that now starts it again, finds the groups of the
// earlier one so; a service manager may also start it where delegate would move it.
func beforeMove(own string) string {
	above := filepath.Dir(own)
	if filepath.Base(own) != serverGroup {
		return own
	}
	if _, err := os.Stat(filepath.Join(above, parentGroup)); err == nil || !hasControllers(own) {
		return above
	}
	return own
}

// delegate makes parent below own with all controllers. In version 2 a group has
// either processes or children with controllers: own's processes, this server
// first, move to a child beside parent.
func delegate(own, parent string) error {
	enable := []byte("+" + strings.Join(controllers, " +"))
	if err := os.Mkdir(parent, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make cgroup: %w", err)
	}
	err := os.WriteFile(filepath.Join(own, "cgroup.subtree_control"), enable, 0)
	// What processes fork while they are moved may stay, and has to be moved after them.
	for moves := 0; moves < 10 && errors.Is(err, syscall.EBUSY); moves++ {
		if err := moveProcesses(own, filepath.Join(own, serverGroup)); err != nil {
			return err
		}
		err = os.WriteFile(filepath.Join(own, "cgroup.subtree_control"), enable, 0)
	}
	if err != nil {
		return fmt.Errorf("enable cgroup controllers: %w", err)
	}
	if err := os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), enable, 0); err != nil {
		return fmt.Errorf("enable cgroup controllers: %w", err)
	}
	return nil
}

func moveProcesses(from, to string) error {
	if err := os.Mkdir(to, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make cgroup: %w", err)
	}
	return eachLine(filepath.Join(from, "cgroup.procs"), func(pid string) {
		// A process that has ended meanwhile need not move.
		_ = os.WriteFile(filepath.Join(to, "cgroup.procs"), []byte(pid), 0)
	})
}
