//go:build linux

package hostile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"fermata/tests/harness"
)

// A memoryWatch measures the peak memory of one process.
type memoryWatch struct {
	pid  int
	quit chan struct{}
	done chan struct{}

	mu  sync.Mutex
	max int
}

// watchMemory watches a process until stop is called.
func watchMemory(pid int) *memoryWatch {
	w := &memoryWatch{pid: pid, quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-w.quit:
				return
			case <-tick.C:
				now := residentMemory(pid)
				w.mu.Lock()
				w.max = max(w.max, now)
				w.mu.Unlock()
			}
		}
	}()
	return w
}

func (w *memoryWatch) stop() {
	close(w.quit)
	<-w.done
}

// most returns the peak since the last call, in bytes.
func (w *memoryWatch) most() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := max(w.max, residentMemory(w.pid))
	w.max = 0
	return found
}

// residentMemory returns the resident memory of a process, in bytes.
func residentMemory(pid int) int {
	kilobytes, _ := strconv.Atoi(strings.TrimSuffix(procStatus(pid)["VmRSS"], " kB")) // 0 if it has ended.
	return kilobytes << 10
}

// procStatus returns /proc/PID/status.
func procStatus(pid int) map[string]string {
	found := map[string]string{}
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // The process may have ended.
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		found[name] = strings.TrimSpace(value)
	}
	return found
}

// A condition is what an attack must not change about a server and its machine.
type condition struct {
	// counts must not grow by more than growth allows.
	counts map[string]int
	// facts must not change.
	facts map[string]string
}

// growth is by how much a count may grow, for harmless reasons: connections of this test, threads
// of the Go runtime, timers of other programs.
var growth = map[string]int{
	"descriptors of the server": 12, "threads of the server": 24, "queued signals of the server's user": 64,
	"memory of the cgroup beside the server's": 128 << 20,
}

// tcpGrowth is by how many pages all TCP buffers of the machine may grow during a test.
const tcpGrowth = 64 << 8

// serverMemory is by how many bytes the server's memory may grow during one attack.
const serverMemory = 256 << 20

// conditionOf measures the condition of a server and its machine.
func conditionOf(s *harness.Server) condition {
	c := condition{map[string]int{}, map[string]string{}}
	pid := s.Cmd.Process.Pid
	family := s.Family()
	// What must not change about each process while it lives.
	for _, p := range family {
		if p.Dead {
			c.counts["zombies"]++
		}
		c.facts[fmt.Sprintf("process %d %s", p.PID, p.Start)] = scheduling(p.PID)
	}
	c.counts["processes"] = len(family)
	c.counts["cgroups"] = len(harness.SandboxGroups(s.Groups))
	c.counts["memory of the cgroup beside the server's"] = max(0, groupMemory(s.Groups)-residentMemory(pid))
	status := procStatus(pid)
	c.counts["memory of the server"] = residentMemory(pid)
	c.counts["threads of the server"], _ = strconv.Atoi(status["Threads"])
	queued, _, _ := strings.Cut(status["SigQ"], "/")
	c.counts["queued signals of the server's user"], _ = strconv.Atoi(queued)
	for name, p := range keepers(pid, family) {
		c.counts["descriptors of the "+name] = entries(fmt.Sprintf("/proc/%d/fd", p))
		if name != "server" {
			c.counts["mounts of the "+name] = lines(fmt.Sprintf("/proc/%d/mountinfo", p))
			c.facts["rights of the "+name] = rights(p)
		}
	}
	for _, kind := range []string{"shm", "sem", "msg"} {
		c.counts["System V "+kind] = lines("/proc/sysvipc/" + kind)
	}
	if list, err := s.Containers(context.Background()); err == nil {
		c.counts["containers"] = len(list)
	}
	maps.Copy(c.facts, hostFacts())
	return c
}

// compare returns an error that names what has changed since before. most is the peak of the
// server's memory meanwhile.
func (c condition) compare(before condition, most int) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.counts)) {
		now, then := c.counts[name], before.counts[name]
		switch {
		case name == "memory of the server":
			if most > then+serverMemory {
				errs = append(errs, fmt.Errorf("the server had %d MiB of memory, %d before", most>>20, then>>20))
			}
		case now > then+growth[name]:
			errs = append(errs, fmt.Errorf("%s: %d, before %d", name, now, then))
		case name == "processes" && now < then:
			errs = append(errs, fmt.Errorf("the pool is not full again: %d processes, before %d", now, then))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before.facts)) {
		if now, there := c.facts[name]; now != before.facts[name] && (there || !strings.HasPrefix(name, "process ")) {
			errs = append(errs, fmt.Errorf("%s was\n%s\nand is\n%s", name, before.facts[name], now))
		}
	}
	return errors.Join(errs...)
}

// keepers returns the processes that make sandboxes: the server, and for process sandboxes its
// zygote and nursery, which are the oldest processes below it.
func keepers(pid int, family []harness.Process) map[string]int {
	found := map[string]int{"server": pid}
	// The time counts, not the number: numbers of processes wrap around.
	all := slices.SortedFunc(slices.Values(family), func(a, b harness.Process) int {
		return cmp.Or(cmp.Compare(len(a.Start), len(b.Start)), cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID))
	})
	for _, name := range []string{"zygote", "nursery"} {
		for _, p := range all {
			if p.Parent == pid && strings.HasPrefix(p.Command, "python") {
				found[name], pid = p.PID, p.PID
				break
			}
		}
	}
	return found
}

// scheduling returns how a process is scheduled, and its limits.
func scheduling(pid int) string {
	limits, _ := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid)) // The process may have ended.
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 39 {
		return ""
	}
	group, _ := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", pid)) // Not every kernel has it.
	return fmt.Sprintf("nice %s, policy %s, processors %s\n%s%s", fields[16], fields[38], procStatus(pid)["Cpus_allowed"], group, limits)
}

// rights returns the user and the capabilities of a process, and whether it is stopped.
func rights(pid int) string {
	status := procStatus(pid)
	adjustment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid)) // The process may have ended.
	stopped := strings.HasPrefix(status["State"], "T")
	return fmt.Sprint(status["Uid"], status["Gid"], status["CapEff"], status["SigIgn"], stopped, string(adjustment))
}

// hostFacts returns facts about the host that no program may change.
func hostFacts() map[string]string {
	facts := map[string]string{}
	library := libraryDir()
	for _, path := range []string{
		"/etc/passwd", "/etc/hosts", "/usr/bin", "/usr/bin/env", "/usr/bin/python3", "/bin/sh", library, filepath.Join(library, "os.py"),
		filepath.Join(library, "json", "__init__.py"), "/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random", "/tmp",
	} {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		facts[path] = fmt.Sprint(info.Mode(), info.Sys().(*syscall.Stat_t).Uid, info.Sys().(*syscall.Stat_t).Nlink)
		if path != "/tmp" {
			facts[path] += fmt.Sprint(info.Size(), info.ModTime())
		}
		if path == "/tmp" {
			facts[path] = info.Mode().String()
		}
	}
	for _, name := range []string{
		"kernel/hostname", "kernel/domainname", "kernel/core_pattern", "kernel/pid_max", "kernel/threads-max", "kernel/sem", "kernel/shmall",
		"kernel/shmmax", "kernel/msgmni", "kernel/modprobe", "kernel/panic", "kernel/tainted", "kernel/random/boot_id", "fs/mqueue/queues_max",
		"fs/mqueue/msg_max", "fs/file-max", "fs/inotify/max_user_instances", "net/ipv4/tcp_mem", "net/ipv4/ip_forward", "vm/overcommit_memory",
	} {
		text, _ := os.ReadFile(filepath.Join("/proc/sys", name)) // Not every kernel has all.
		facts[name] = string(text)
	}
	facts["mounts of the host"] = strconv.Itoa(hostMounts())
	return facts
}

// hostMounts counts the mounts of the host, except where Docker and other tests have theirs.
func hostMounts() int {
	text, _ := os.ReadFile("/proc/self/mountinfo") // This file always exists.
	count := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > 4 && !elsewhere.MatchString(fields[4]) {
			count++
		}
	}
	return count
}

// elsewhere matches the places where Docker and other tests have mounts.
var elsewhere = regexp.MustCompile(`^/(tmp|var/tmp|run|var/run|var/lib/docker|sys/fs/cgroup)/`)

// libraryDir returns the directory of Python's library.
var libraryDir = sync.OnceValue(func() string {
	found, _ := filepath.Glob("/usr/lib/python3.[0-9]*/os.py") // The pattern is valid.
	if len(found) == 0 {
		return "/usr/lib"
	}
	return filepath.Dir(found[len(found)-1])
})

// pagesOfTCP returns the size of all TCP buffers of the machine, in pages.
func pagesOfTCP() int {
	text, _ := os.ReadFile("/proc/net/sockstat") // This file always exists.
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "TCP:" {
			pages, _ := strconv.Atoi(fields[len(fields)-1])
			return pages
		}
	}
	return 0
}

// groupMemory returns the memory in a server's cgroups, without the cache of files on disk.
func groupMemory(groups []string) int {
	sum := 0
	for _, group := range groups {
		text, err := os.ReadFile(filepath.Join(group, "memory.stat"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) == 2 && slices.Contains([]string{"total_rss", "total_shmem", "anon", "shmem", "kernel"}, fields[0]) {
				bytes, _ := strconv.Atoi(fields[1])
				sum += bytes
			}
		}
	}
	return sum
}

func entries(dir string) int {
	found, _ := os.ReadDir(dir) // The process may have ended.
	return len(found)
}

func lines(path string) int {
	text, _ := os.ReadFile(path) // The process may have ended.
	return strings.Count(string(text), "\n")
}
