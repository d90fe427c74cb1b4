//go:build linux

package seccomp

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// longest is the most instructions that the filter may have. The kernel accepts 4096, but
// compiles and tries the filter for every process that installs it.
const longest = 500

func TestFilterFits(t *testing.T) {
	f, err := Filter()
	if err != nil {
		t.Fatal(err)
	}
	if len(f)%8 != 0 || len(f)/8 > longest {
		t.Errorf("filter has %d bytes, want a multiple of 8 for at most %d instructions", len(f), longest)
	}
}

// A machine runs the filter like the kernel.
type machine struct {
	t  *testing.T
	vm *bpf.VM
}

func newMachine(t *testing.T) machine {
	t.Helper()
	vm, err := bpf.NewVM(program())
	if err != nil {
		t.Fatal(err)
	}
	return machine{t, vm}
}

// run returns the filter's answer to a call.
func (m machine) run(arch uint32, number int, args [6]uint64) uint32 {
	m.t.Helper()
	// The virtual machine is made for network packets and reads their byte order.
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[offsetNumber:], uint32(number))
	binary.BigEndian.PutUint32(data[offsetArch:], arch)
	for i, arg := range args {
		binary.BigEndian.PutUint32(data[offsetArgs+8*i:], uint32(arg))
		binary.BigEndian.PutUint32(data[offsetArgs+8*i+4:], uint32(arg>>32))
	}
	got, err := m.vm.Run(data)
	if err != nil {
		m.t.Fatal(err)
	}
	return uint32(got)
}

// TestFilterAllows tries every number that has no rule: calls on the list must be allowed,
// all others refused.
func TestFilterAllows(t *testing.T) {
	m := newMachine(t)
	listed := slices.Collect(maps.Values(calls()))
	for number := range 1024 {
		if slices.ContainsFunc(rules(), func(r rule) bool { return r.number == number }) {
			if slices.Contains(listed, number) {
				t.Errorf("call %d has a rule and is allowed whatever the rule says", number)
			}
			continue
		}
		want := errno(unix.EPERM)
		if slices.Contains(listed, number) {
			want = retAllow
		}
		if got := m.run(auditArch, number, [6]uint64{}); got != want {
			t.Errorf("call %d gets %#x, want %#x", number, got, want)
		}
	}
	for _, number := range []int{0x3fffffff, x32Bit, x32Bit + unix.SYS_READ, 0xffffffff} {
		if got := m.run(auditArch, number, [6]uint64{}); got != errno(unix.EPERM) {
			t.Errorf("call %#x gets %#x, want EPERM", number, got)
		}
	}
	if got := m.run(auditArch^1, unix.SYS_READ, [6]uint64{}); got != retKill {
		t.Errorf("a call of another architecture gets %#x, want the end of the process", got)
	}
}

// high is a bit in the half of an argument that the kernel ignores if the argument is an
// int.
const high = 1 << 32

// conditions are calls with arguments, and whether both the filter and the profile must
// allow them.
var conditions = []struct {
	name    string
	number  int
	args    [6]uint64
	allowed bool
}{
	{"clone", unix.SYS_CLONE, [6]uint64{uint64(unix.SIGCHLD)}, true}, // fork
	{"clone", unix.SYS_CLONE, [6]uint64{unix.CLONE_VM | unix.CLONE_VFORK | uint64(unix.SIGCHLD)}, true},
	{"clone", unix.SYS_CLONE, [6]uint64{0x3d0f00}, true}, // how glibc makes a thread
	{"clone", unix.SYS_CLONE, [6]uint64{0x3d0f00 | high}, true},
	{"clone", unix.SYS_CLONE, [6]uint64{unix.CLONE_PARENT | uint64(unix.SIGCHLD)}, false},
	{"clone", unix.SYS_CLONE, [6]uint64{unix.CLONE_PARENT}, false},
	{"clone", unix.SYS_CLONE, [6]uint64{uint64(unix.SIGCONT)}, false},
	{"clone", unix.SYS_CLONE, [6]uint64{uint64(unix.SIGKILL)}, false},
	{"clone", unix.SYS_CLONE, [6]uint64{uint64(unix.SIGCHLD) | 0x80}, false},
	{"clone", unix.SYS_CLONE, [6]uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, false},
	{"clone", unix.SYS_CLONE, [6]uint64{unix.CLONE_NEWNS}, false},
	{"clone", unix.SYS_CLONE, [6]uint64{unix.CLONE_NEWCGROUP}, false},
	{"clone", unix.SYS_CLONE, [6]uint64{unix.CLONE_NEWUTS}, false},
	{"clone", unix.SYS_CLONE, [6]uint64{unix.CLONE_NEWIPC}, false},
	{"clone", unix.SYS_CLONE, [6]uint64{unix.CLONE_NEWPID}, false},
	{"clone", unix.SYS_CLONE, [6]uint64{unix.CLONE_NEWNET | high}, false},

	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM}, true},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}, true},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET}, true},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX, unix.SOCK_RAW}, false},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM, 1}, false},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_STREAM}, true},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC, unix.IPPROTO_TCP}, true},
	{"socket", unix.SYS_SOCKET, [6]uint64{high | unix.AF_INET, high | unix.SOCK_DGRAM, high | unix.IPPROTO_UDP}, true},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP}, true},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_INET6, unix.SOCK_DGRAM}, true},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_UDP}, false},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_TCP}, false},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, false},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE}, false},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_L2TP}, false},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, false},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, false},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_STREAM, 256}, false}, // SMC
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_SEQPACKET}, false},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_DCCP}, false},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, false},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_STREAM | 0x10}, false},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW}, false},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_NETLINK, unix.SOCK_DGRAM}, false},
	{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, false},
	{"socket", unix.SYS_SOCKET, [6]uint64{0, unix.SOCK_STREAM}, false},
	{"socketpair", unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, 0, 1 << 40}, true},
	{"socketpair", unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, true},
	{"socketpair", unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM, 1}, false},
	{"socketpair", unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_INET, unix.SOCK_STREAM}, false},
	{"socketpair", unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_TIPC, unix.SOCK_STREAM}, false},

	{"personality", unix.SYS_PERSONALITY, [6]uint64{0}, true},
	{"personality", unix.SYS_PERSONALITY, [6]uint64{0x0040000}, true},
	{"personality", unix.SYS_PERSONALITY, [6]uint64{0xffffffff}, true},
	{"personality", unix.SYS_PERSONALITY, [6]uint64{8}, false},
	{"personality", unix.SYS_PERSONALITY, [6]uint64{high | 0x0400000}, false},

	{"setpriority", unix.SYS_SETPRIORITY, [6]uint64{unix.PRIO_PROCESS, 0, 19}, true},
	{"setpriority", unix.SYS_SETPRIORITY, [6]uint64{unix.PRIO_PGRP, high, 19}, true},
	{"setpriority", unix.SYS_SETPRIORITY, [6]uint64{unix.PRIO_USER, 0, 19}, false},
	{"setpriority", unix.SYS_SETPRIORITY, [6]uint64{high | unix.PRIO_USER, 0, 19}, false},
	{"setpriority", unix.SYS_SETPRIORITY, [6]uint64{unix.PRIO_PROCESS, 1, 19}, false},
	{"setpriority", unix.SYS_SETPRIORITY, [6]uint64{unix.PRIO_PGRP, 1, 19}, false},
	{"sched_setaffinity", unix.SYS_SCHED_SETAFFINITY, [6]uint64{0, 8, 1 << 40}, true},
	{"sched_setaffinity", unix.SYS_SCHED_SETAFFINITY, [6]uint64{high | 1, 8}, false},
	{"sched_setattr", unix.SYS_SCHED_SETATTR, [6]uint64{0, 1 << 40}, true},
	{"sched_setattr", unix.SYS_SCHED_SETATTR, [6]uint64{1, 1 << 40}, false},
	{"sched_setparam", unix.SYS_SCHED_SETPARAM, [6]uint64{high, 1 << 40}, true},
	{"sched_setparam", unix.SYS_SCHED_SETPARAM, [6]uint64{1, 1 << 40}, false},
	{"sched_setscheduler", unix.SYS_SCHED_SETSCHEDULER, [6]uint64{0, 5}, true},
	{"sched_setscheduler", unix.SYS_SCHED_SETSCHEDULER, [6]uint64{1, 5}, false},
	{"ioprio_set", 251, [6]uint64{1, 0, 0}, false},

	{"prlimit64", unix.SYS_PRLIMIT64, [6]uint64{0, unix.RLIMIT_NOFILE, 1 << 40}, true},
	{"prlimit64", unix.SYS_PRLIMIT64, [6]uint64{high, high | unix.RLIMIT_STACK, 1 << 40}, true},
	{"prlimit64", unix.SYS_PRLIMIT64, [6]uint64{0, unix.RLIMIT_CORE, 0, 1 << 40}, true},
	{"prlimit64", unix.SYS_PRLIMIT64, [6]uint64{0, unix.RLIMIT_CORE, 1 << 12}, false},
	{"prlimit64", unix.SYS_PRLIMIT64, [6]uint64{0, unix.RLIMIT_CORE, 1 << 40}, false},
	{"prlimit64", unix.SYS_PRLIMIT64, [6]uint64{0, high | unix.RLIMIT_CORE, 1 << 40}, false},
	{"prlimit64", unix.SYS_PRLIMIT64, [6]uint64{1, unix.RLIMIT_AS, 1 << 40}, false},
	{"prlimit64", unix.SYS_PRLIMIT64, [6]uint64{1, unix.RLIMIT_AS, 0}, false},
	{"setrlimit", unix.SYS_SETRLIMIT, [6]uint64{unix.RLIMIT_CPU}, true},
	{"setrlimit", unix.SYS_SETRLIMIT, [6]uint64{unix.RLIMIT_AS}, true},
	{"setrlimit", unix.SYS_SETRLIMIT, [6]uint64{unix.RLIMIT_FSIZE}, true},
	{"setrlimit", unix.SYS_SETRLIMIT, [6]uint64{15}, true},
	{"setrlimit", unix.SYS_SETRLIMIT, [6]uint64{unix.RLIMIT_CORE}, false},
	{"setrlimit", unix.SYS_SETRLIMIT, [6]uint64{high | unix.RLIMIT_CORE}, false},

	{"fcntl", unix.SYS_FCNTL, [6]uint64{3, unix.F_DUPFD, 10}, true},
	{"fcntl", unix.SYS_FCNTL, [6]uint64{3, unix.F_SETFD, 1}, true},
	{"fcntl", unix.SYS_FCNTL, [6]uint64{3, high | unix.F_SETFL, unix.O_NONBLOCK}, true},
	{"fcntl", unix.SYS_FCNTL, [6]uint64{3, unix.F_SETLKW}, true},
	{"fcntl", unix.SYS_FCNTL, [6]uint64{3, unix.F_OFD_GETLK}, true},
	{"fcntl", unix.SYS_FCNTL, [6]uint64{3, unix.F_OFD_SETLKW}, true},
	{"fcntl", unix.SYS_FCNTL, [6]uint64{3, unix.F_DUPFD_CLOEXEC}, true},
	{"fcntl", unix.SYS_FCNTL, [6]uint64{3, unix.F_SETPIPE_SZ}, true},
	{"fcntl", unix.SYS_FCNTL, [6]uint64{3, unix.F_GETPIPE_SZ}, true},
	{"fcntl", unix.SYS_FCNTL, [6]uint64{3, unix.F_ADD_SEALS}, true},
	{"fcntl", unix.SYS_FCNTL, [6]uint64{3, unix.F_GET_SEALS}, true},
	{"fcntl", unix.SYS_FCNTL, [6]uint64{3, unix.F_SETOWN, 1}, false},
	{"fcntl", unix.SYS_FCNTL, [6]uint64{3, unix.F_SETSIG, uint64(unix.SIGCONT)}, false},
	{"fcntl", unix.SYS_FCNTL, [6]uint64{3, high | unix.F_SETSIG, uint64(unix.SIGCONT)}, false},
	{"fcntl", unix.SYS_FCNTL, [6]uint64{3, unix.F_SETOWN_EX}, false},
	{"fcntl", unix.SYS_FCNTL, [6]uint64{3, unix.F_SETLEASE}, false},
	{"fcntl", unix.SYS_FCNTL, [6]uint64{3, unix.F_NOTIFY}, false},
	{"fcntl", unix.SYS_FCNTL, [6]uint64{3, unix.F_SET_RW_HINT}, false},

	{"prctl", unix.SYS_PRCTL, [6]uint64{unix.PR_SET_PDEATHSIG, 9}, true},
	{"prctl", unix.SYS_PRCTL, [6]uint64{unix.PR_SET_DUMPABLE, 0}, true},
	{"prctl", unix.SYS_PRCTL, [6]uint64{unix.PR_SET_NAME, 1 << 40}, true},
	{"prctl", unix.SYS_PRCTL, [6]uint64{unix.PR_GET_NAME, 1 << 40}, true},
	{"prctl", unix.SYS_PRCTL, [6]uint64{unix.PR_GET_SECCOMP}, true},
	{"prctl", unix.SYS_PRCTL, [6]uint64{unix.PR_CAPBSET_READ, 1}, true},
	{"prctl", unix.SYS_PRCTL, [6]uint64{unix.PR_SET_NO_NEW_PRIVS, 1}, true},
	{"prctl", unix.SYS_PRCTL, [6]uint64{unix.PR_SET_THP_DISABLE, 1}, true},
	{"prctl", unix.SYS_PRCTL, [6]uint64{unix.PR_SET_TIMERSLACK, 1}, true},
	{"prctl", unix.SYS_PRCTL, [6]uint64{unix.PR_SET_SECCOMP, 2}, false},
	{"prctl", unix.SYS_PRCTL, [6]uint64{high | unix.PR_SET_SECCOMP, 2}, false},
	{"prctl", unix.SYS_PRCTL, [6]uint64{unix.PR_SET_SYSCALL_USER_DISPATCH, 1}, false},
	{"prctl", unix.SYS_PRCTL, [6]uint64{unix.PR_SCHED_CORE, 1}, false},
	{"prctl", unix.SYS_PRCTL, [6]uint64{1000}, false},

	{"mmap", unix.SYS_MMAP, [6]uint64{0, 1 << 20, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS, lowHalf}, true},
	{"mmap", unix.SYS_MMAP, [6]uint64{0, 1 << 20, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_HUGETLB, lowHalf}, false},
	{"madvise", unix.SYS_MADVISE, [6]uint64{1 << 40, 1 << 20, unix.MADV_DONTNEED}, true},
	{"madvise", unix.SYS_MADVISE, [6]uint64{1 << 40, 1 << 20, unix.MADV_FREE}, true},
	{"madvise", unix.SYS_MADVISE, [6]uint64{1 << 40, 1 << 20, unix.MADV_UNMERGEABLE}, true},
	{"madvise", unix.SYS_MADVISE, [6]uint64{1 << 40, 1 << 20, unix.MADV_HUGEPAGE}, true},
	{"madvise", unix.SYS_MADVISE, [6]uint64{1 << 40, 1 << 20, unix.MADV_MERGEABLE}, false},
	{"memfd_create", unix.SYS_MEMFD_CREATE, [6]uint64{1 << 40, unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING}, true},
	{"memfd_create", unix.SYS_MEMFD_CREATE, [6]uint64{1 << 40, unix.MFD_HUGETLB}, false},
	{"shmget", unix.SYS_SHMGET, [6]uint64{0, 1 << 20, 0o1600}, true},
	{"shmget", unix.SYS_SHMGET, [6]uint64{0, 1 << 20, 0o1600 | shmHugeTLB}, false},
}

// TestConditions tries the filter and the profile on calls that they must tell apart by
// their arguments.
func TestConditions(t *testing.T) {
	m, p := newMachine(t), readProfile(t)
	tried := map[int][]bool{}
	for _, c := range conditions {
		want := errno(unix.EPERM)
		if c.allowed {
			want = retAllow
		}
		if got := m.run(auditArch, c.number, c.args); got != want {
			t.Errorf("the filter answers %s(%#x) by %#x, want %#x", c.name, c.args, got, want)
		}
		if got := p.run(c.name, c.args); got != want {
			t.Errorf("the profile answers %s(%#x) by %#x, want %#x", c.name, c.args, got, want)
		}
		tried[c.number] = append(tried[c.number], c.allowed)
	}
	for _, r := range rules() {
		if len(r.allowed) > 0 && (!slices.Contains(tried[r.number], true) || !slices.Contains(tried[r.number], false)) {
			t.Errorf("%s has a rule of which one side was not tried", r.name)
		}
	}
}

// TestAnswers checks calls whose answer does not depend on their arguments.
func TestAnswers(t *testing.T) {
	m, p := newMachine(t), readProfile(t)
	for name, want := range map[string]unix.Errno{
		"clone3": unix.ENOSYS, "inotify_init1": unix.ENOSYS, "inotify_add_watch": unix.ENOSYS, "timer_create": unix.ENOSYS,
		"seccomp": unix.ENOSYS, "sync": 0, "syncfs": 0, "fsync": 0, "fdatasync": 0, "sync_file_range": 0, "fadvise64": 0,
		"mq_open": unix.EPERM, "timer_settime": unix.EPERM, "fanotify_init": unix.EPERM,
	} {
		number := slices.IndexFunc(rules(), func(r rule) bool { return r.name == name })
		if number >= 0 {
			if got := m.run(auditArch, rules()[number].number, [6]uint64{1, 1}); got != errno(want) {
				t.Errorf("the filter answers %s by %#x, want %v", name, got, want)
			}
		} else if want != unix.EPERM {
			t.Errorf("%s has no rule", name)
		}
		if got := p.run(name, [6]uint64{1, 1}); got != errno(want) {
			t.Errorf("the profile answers %s by %#x, want %v", name, got, want)
		}
	}
}

// TestFilterIsProfile compares the answers of filter and profile for random arguments near
// those of the rules.
func TestFilterIsProfile(t *testing.T) {
	m, p := newMachine(t), readProfile(t)
	random := rand.New(rand.NewPCG(1, 2))
	for _, r := range rules() {
		for range 2000 {
			var args [6]uint64
			for i := range args {
				args[i] = []uint64{0, 1, random.Uint64(), random.Uint64N(1 << 11), high | random.Uint64N(128)}[random.IntN(5)]
			}
			if len(r.allowed) > 0 {
				for _, test := range r.allowed[random.IntN(len(r.allowed))] {
					args[test.argument] = test.value | args[test.argument]&^test.mask
				}
				if random.IntN(2) == 0 {
					args[random.IntN(3)] ^= 1 << random.IntN(64)
				}
			}
			if got, want := m.run(auditArch, r.number, args), p.run(r.name, args); got != want {
				t.Fatalf("%s(%#x): the filter answers %#x, the profile %#x", r.name, args, got, want)
			}
		}
	}
}
