//go:build linux

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

	"golang.org/x/sys/unix"
)

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
		// A thread may move itself by this file, for which the kernel need not stop all other
		// threads; that takes some ten milliseconds. The worker has one thread.
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

// addFreezer adds the freezer's hierarchy of version 1, if this server may use it.
func (c *cgroups) addFreezer(mount string) {
	if mount == "" {
		return
	}
	parent := filepath.Join(mount, parentGroup)
	if err := os.Mkdir(parent, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return
	}
	// A server with more rights may have made the directory.
	if unix.Access(parent, unix.W_OK) == nil {
		c.parents, c.freezer = append(c.parents, parent), parent
	}
}

// parentGroup holds the groups of programs. In version 2 serverGroup, beside it, holds the
// server.
const (
	parentGroup = "fermata"
	serverGroup = "fermata-server"
)

// try makes one group and removes it, so that a limit that cannot be set is found at the start.
func (c *cgroups) try() error {
	ctx, cancel := context.WithTimeout(context.Background(), clearTimeout)
	defer cancel()
	// If what another server has left cannot be removed, this server can still set limits.
	_ = c.sweepTries(ctx)
	name := tryPrefix + strconv.Itoa(os.Getpid())
	group, err := c.create(name)
	if err != nil {
		return errors.Join(err, c.remove(ctx, name))
	}
	group.close()
	return c.remove(ctx, name)
}

// tryPrefix and the server's process id name the group that try makes.
const tryPrefix = "try-"

// sweepTries removes the groups of servers that were killed during try.
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

// cgroupMounts returns the directory of a process's own group for each controller; the
// unified hierarchy of version 2 has the name "". proc is the directory of the process,
// such as /proc/self.
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
			// This mount shows what is outside our cgroup namespace, where no process of ours may go.
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

// hasControllers reports whether a group of version 2 has all controllers that bound a program.
func hasControllers(dir string) bool {
	have, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(controllers, func(name string) bool {
		return !slices.Contains(strings.Fields(string(have)), name)
	})
}

// beforeMove returns the group to make groups in; own is the one that the server is in. If
// delegate has moved an earlier server together with the shell that now starts this one, own
// is where delegate moves servers to, and the groups are beside it. A service manager may
// start a server there, too.
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

// delegate makes parent below own with all controllers. In version 2 a group has either
// processes or children with controllers, so the processes of own move to a child beside
// parent, this server first.
func delegate(own, parent string) error {
	enable := []byte("+" + strings.Join(controllers, " +"))
	if err := os.Mkdir(parent, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make cgroup: %w", err)
	}
	err := os.WriteFile(filepath.Join(own, "cgroup.subtree_control"), enable, 0)
	// A process that another one forks while that is moved may stay behind, and is moved by the next pass.
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
