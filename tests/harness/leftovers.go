package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A Process is a process of this machine. Start is when it began, which tells it apart from a
// later process with the same number.
type Process struct {
	PID, Parent int
	Start       string
	Command     string
	Dead        bool // a zombie: it has ended and its parent has not waited for it
}

// AllProcesses returns all processes of this machine by their numbers.
func AllProcesses() map[int]Process {
	found := map[int]Process{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // The pattern is good.
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // The process has ended.
		}
		// 17 (name, which may have spaces) S 1 …; the start is field 22.
		before, after, _ := strings.Cut(string(stat), " (")
		end := strings.LastIndex(after, ") ")
		if end < 0 {
			continue
		}
		fields := strings.Fields(after[end+2:])
		if len(fields) < 20 {
			continue
		}
		pid, _ := strconv.Atoi(before)
		parent, _ := strconv.Atoi(fields[1])
		found[pid] = Process{pid, parent, fields[19], after[:end], fields[0] == "Z" || fields[0] == "X"}
	}
	return found
}

// Descendants returns the roots and all processes below them.
func Descendants(roots []Process) []Process {
	all := AllProcesses()
	children := map[int][]Process{}
	for _, p := range all {
		children[p.Parent] = append(children[p.Parent], p)
	}
	var found []Process
	seen := map[int]bool{}
	for queue := roots; len(queue) > 0; queue = queue[1:] {
		p := queue[0]
		now, ok := all[p.PID]
		if !ok || seen[p.PID] || p.Start != "" && p.Start != now.Start {
			continue
		}
		seen[p.PID] = true
		found = append(found, now)
		queue = append(queue, children[p.PID]...)
	}
	return found
}

// Cleared waits until nothing of the server is left: neither the processes of family nor
// containers, cgroups or files.
func (s *Server) Cleared(family []Process) error {
	return Within(ClearTimeout, func() error { return s.leftovers(family) })
}

// leftovers returns an error that names what is left of the server: processes of family,
// containers, cgroups and files.
func (s *Server) leftovers(family []Process) error {
	var errs []error
	all := AllProcesses()
	for _, p := range family {
		if now, ok := all[p.PID]; ok && now.Start == p.Start && !now.Dead {
			errs = append(errs, fmt.Errorf("process %d (%s) is left", p.PID, p.Command))
		}
	}
	containers, err := s.Containers(context.Background())
	errs = append(errs, err)
	for _, c := range containers {
		errs = append(errs, fmt.Errorf("container %s is left: %s", c.ID[:12], c.Status))
	}
	for _, group := range SandboxGroups(s.Groups) {
		errs = append(errs, fmt.Errorf("cgroup %s is left", group))
	}
	errs = append(errs, filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		inner := strings.Count(strings.TrimPrefix(path, s.Dir), "/") > 2
		if below, ok := strings.CutPrefix(path, s.filesDir()+"/"); err == nil && ok {
			// Clients' files outlive the server, and a killed one may leave a half-written file.
			part := s.killed && strings.HasSuffix(below, ".tmp")
			if !d.IsDir() && !part && !storedFile.MatchString(below) {
				return fmt.Errorf("%s is left", path)
			}
			return nil
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !d.IsDir() && !d.Type().IsRegular():
			return fmt.Errorf("%s (%v) is left", path, d.Type())
		case inner, filepath.Dir(path) == filepath.Join(s.Dir, "tmp"):
			// A server keeps files in its state directory, and none in folders below it.
			return fmt.Errorf("%s is left", path)
		}
		return nil
	}))
	return errors.Join(errs...)
}

// storedFile matches the names in the directory of the store of files.
var storedFile = regexp.MustCompile(`^(claims/[A-Za-z0-9_-]{21}|(files|drops|contents/[0-9a-f]{64})/[0-9a-f]{64}/[A-Za-z0-9_-]{21}\.[A-Za-z0-9_-]{21})$`)

// filesDir returns the directory in which the server keeps the files of its clients.
func (s *Server) filesDir() string { return filepath.Join(s.Dir, "state", "files") }

// StoredFiles returns the names of everything in the server's store of files.
func (s *Server) StoredFiles() (names []string, err error) {
	err = filepath.WalkDir(s.filesDir(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, strings.TrimPrefix(path, s.filesDir()+"/"))
		}
		return err
	})
	return names, err
}

// cgroupMounts returns the directories of this process's cgroups, one for each hierarchy that can
// limit a sandbox.
func cgroupMounts() []string {
	own := map[string]string{}
	cgroup, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(cgroup)) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 {
			own[f[1]] = f[2]
		}
	}
	var mounts []string
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		left, right, _ := strings.Cut(lines.Text(), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		name := ""
		switch {
		case len(l) < 5 || len(r) < 3 || !strings.HasPrefix(r[0], "cgroup"):
			continue
		case r[0] == "cgroup":
			options := strings.Split(r[2], ",")
			name = options[len(options)-1]
			if !slices.Contains([]string{"cpu", "freezer", "memory", "pids"}, name) {
				continue
			}
		}
		mounts = append(mounts, filepath.Join(l[4], own[name]))
	}
	return mounts
}

// makeGroups makes cgroups for one server, so that what it leaves there can be told apart from
// what other servers leave. It returns none where it has no right to make them.
func makeGroups(name string) []string {
	var groups []string
	for _, mount := range cgroupMounts() {
		group := filepath.Join(mount, "fermata-tests-"+strconv.Itoa(os.Getpid())+"-"+name)
		if err := os.Mkdir(group, 0o755); err != nil {
			continue
		}
		if have, err := os.ReadFile(filepath.Join(group, "cgroup.controllers")); err == nil && !strings.Contains(string(have), "memory") {
			// With cgroup version 2, a group without controllers would keep the server from
			// finding one that has them.
			_ = os.Remove(group)
			continue
		}
		groups = append(groups, group)
	}
	return groups
}

// SandboxGroups returns the cgroups of sandboxes below the cgroups of a server.
func SandboxGroups(groups []string) []string {
	var found []string
	for _, group := range groups {
		below, _ := filepath.Glob(filepath.Join(group, "fermata", "*", "cgroup.procs")) // The pattern is good.
		for _, file := range below {
			found = append(found, filepath.Dir(file))
		}
	}
	return found
}

// RemoveGroups removes the server's cgroups, after it has ended or before it is launched.
func (s *Server) RemoveGroups() error {
	var errs []error
	for _, group := range s.Groups {
		for _, dir := range []string{filepath.Join(group, "fermata"), filepath.Join(group, "fermata-server"), group} {
			if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, fmt.Errorf("remove cgroup %s: %w", dir, err))
			}
		}
	}
	return errors.Join(errs...)
}

// AtMost returns an error if got is more than limit. what names the things that were counted.
func AtMost(what string, got, limit int) error {
	if got > limit {
		return fmt.Errorf("%d %s, want at most %d", got, what, limit)
	}
	return nil
}
