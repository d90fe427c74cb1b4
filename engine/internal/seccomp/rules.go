package seccomp

import (
	"maps"
	"slices"
	"syscall"

	"fermata/engine/internal/seccomp/abi"
)

// A rule says what becomes of a call that is neither always allowed nor always refused
// with EPERM.
type rule struct {
	name   string
	number int
	// allowed are alternatives: the call is made if every test of one of them holds.
	allowed [][]test
	// otherwise is the call's error if no alternative holds. With 0 the call succeeds
	// without being made. It must be EPERM for a call that has alternatives, because
	// profiles cannot express another error for those.
	otherwise syscall.Errno
}

// A test holds if the bits of an argument that are in the mask equal the value.
type test struct {
	argument    int
	mask, value uint64
}

// lowHalf is the mask of the part of an argument that the kernel reads if the argument is
// an int.
const lowHalf = 0xffffffff

// is returns a test that holds if an int argument has this value.
func is(argument int, value uint64) test { return test{argument, lowHalf, value} }

// upTo returns a test that holds if an int argument is one of the 1<<low consecutive
// values that begin with value, whose low bits must be 0.
func upTo(argument int, value uint64, low int) test {
	return test{argument, lowHalf &^ (1<<low - 1), value}
}

// without returns a test that holds if an argument has none of these bits.
func without(argument int, bits uint64) test { return test{argument, bits, 0} }

// each returns an alternative for each test.
func each(tests ...test) [][]test {
	var alternatives [][]test
	for _, t := range tests {
		alternatives = append(alternatives, []test{t})
	}
	return alternatives
}

// allBut returns alternatives of which at least one holds unless the low bits of an
// argument are those of the value. There is one for each bit, which holds if this bit
// differs: a test for equality cannot be negated.
func allBut(argument int, value uint64, bits int) [][]test {
	var alternatives [][]test
	for bit := range bits {
		alternatives = append(alternatives, []test{{argument, 1 << bit, ^value & (1 << bit)}})
	}
	return alternatives
}

// also returns the alternatives with a test added in front of each.
func also(t test, alternatives [][]test) [][]test {
	var all [][]test
	for _, a := range alternatives {
		all = append(all, append([]test{t}, a...))
	}
	return all
}

// rules returns the rules for all calls that have one.
func rules() []rule {
	r := []rule{
		{"clone", abi.SYS_CLONE, cloneFlags(), abi.EPERM},
		{"fcntl", abi.SYS_FCNTL, fcntlCommands(), abi.EPERM},
		// If the kernel merged pages of the program with equal pages of other processes, the
		// program could find out what theirs contain.
		{"madvise", abi.SYS_MADVISE, allBut(2, abi.MADV_MERGEABLE, 4), abi.EPERM},
		// Huge pages come from a reserve that the whole machine shares.
		{"memfd_create", abi.SYS_MEMFD_CREATE, each(without(1, abi.MFD_HUGETLB)), abi.EPERM},
		{"mmap", abi.SYS_MMAP, each(without(3, abi.MAP_HUGETLB)), abi.EPERM},
		{"shmget", abi.SYS_SHMGET, each(without(2, shmHugeTLB)), abi.EPERM},
		// The ordinary personality, with and without random addresses, and the question which
		// one the process has.
		{"personality", abi.SYS_PERSONALITY, each(is(0, 0), is(0, 0x0040000), is(0, 0xffffffff)), abi.EPERM},
		{"prctl", abi.SYS_PRCTL, prctlOptions(), abi.EPERM},
		{"socket", abi.SYS_SOCKET, append(unixSockets(), ipSockets()...), abi.EPERM},
		{"socketpair", abi.SYS_SOCKETPAIR, unixSockets(), abi.EPERM},
		// The limit on core dumps must stay at 1. With 0 the kernel would still run the host's
		// handler for each dump, with 1 it does not.
		{"setrlimit", abi.SYS_SETRLIMIT, allBut(0, abi.RLIMIT_CORE, 4), abi.EPERM},
		// The calls from here on can act on other processes, even on the supervisor, which has
		// the same user. Only 0, which is the caller, is allowed as the process.
		{"prlimit64", abi.SYS_PRLIMIT64, also(is(0, 0), append(allBut(1, abi.RLIMIT_CORE, 4), []test{{2, ^uint64(0), 0}})), abi.EPERM},
		{"setpriority", abi.SYS_SETPRIORITY, [][]test{{upTo(0, abi.PRIO_PROCESS, 1), is(1, 0)}}, abi.EPERM}, // and PRIO_PGRP
	}
	for name, number := range map[string]int{
		"sched_setaffinity":  abi.SYS_SCHED_SETAFFINITY,
		"sched_setattr":      abi.SYS_SCHED_SETATTR,
		"sched_setparam":     abi.SYS_SCHED_SETPARAM,
		"sched_setscheduler": abi.SYS_SCHED_SETSCHEDULER,
	} {
		r = append(r, rule{name, number, each(is(0, 0)), abi.EPERM})
	}
	for name, number := range missing() {
		r = append(r, rule{name, number, nil, abi.ENOSYS})
	}
	for name, number := range needless() {
		r = append(r, rule{name, number, nil, 0})
	}
	slices.SortFunc(r, func(a, b rule) int { return a.number - b.number })
	return r
}

const (
	namespaceFlags = abi.CLONE_NEWNS | abi.CLONE_NEWCGROUP | abi.CLONE_NEWUTS |
		abi.CLONE_NEWIPC | abi.CLONE_NEWUSER | abi.CLONE_NEWPID | abi.CLONE_NEWNET
	// endSignal are the bits for the signal that a parent gets when its child ends.
	endSignal = 0xff

	shmHugeTLB = 0o4000

	// socketFlags are flags that may be added to the type of a socket.
	socketFlags = abi.SOCK_CLOEXEC | abi.SOCK_NONBLOCK
)

// cloneFlags allows processes and threads to be made, but not namespaces, and not siblings
// of the caller, whose parent may be outside the sandbox. SIGCHLD is the only signal that
// may tell of a child's end: SIGCONT would wake a stopped parent.
func cloneFlags() [][]test {
	const checked = namespaceFlags | abi.CLONE_PARENT | endSignal
	return each(test{0, checked, 0}, test{0, checked, uint64(abi.SIGCHLD)})
}

// fcntlCommands leaves out the commands that make the kernel send signals: F_SETOWN and
// F_SETSIG, which could wake a stopped program, F_SETLEASE, and F_NOTIFY, which also
// reveals what others do in a directory.
func fcntlCommands() [][]test {
	return each(
		upTo(1, abi.F_DUPFD, 3),         // to F_SETLKW
		upTo(1, abi.F_OFD_GETLK, 2),     // to F_OFD_SETLKW
		upTo(1, abi.F_DUPFD_CLOEXEC, 1), // and F_SETPIPE_SZ
		upTo(1, abi.F_GETPIPE_SZ, 1),    // and F_ADD_SEALS
		is(1, abi.F_GET_SEALS),
	)
}

// prctlOptions leaves out PR_SET_SECCOMP, because the memory for compiled filters is
// limited for the machine as a whole; PR_SCHED_CORE, with which a program could keep other
// processes off its core's other hardware thread; PR_SET_SYSCALL_USER_DISPATCH; and all
// options that are newer than this list.
func prctlOptions() [][]test {
	return each(
		upTo(0, 0, 4),               // PR_SET_PDEATHSIG to PR_SET_NAME
		upTo(0, 32, 4),              // PR_TASK_PERF_EVENTS_ENABLE to PR_CAP_AMBIENT
		upTo(0, abi.PR_GET_NAME, 2), // to PR_GET_ENDIAN
		upTo(0, abi.PR_CAPBSET_DROP, 3),
		upTo(0, 48, 3), // PR_SVE_SET_VL to PR_SET_TAGGED_ADDR_CTRL
		is(0, abi.PR_GET_SECCOMP),
		is(0, abi.PR_CAPBSET_READ),
	)
}

// unixSockets and ipSockets leave out raw sockets, multipath TCP, and all families and
// protocols for which the kernel might load a module.
func unixSockets() [][]test {
	var all [][]test
	for _, kind := range []uint64{abi.SOCK_STREAM, abi.SOCK_DGRAM, abi.SOCK_SEQPACKET} {
		all = append(all, []test{is(0, abi.AF_UNIX), is(2, 0), ofType(kind)})
	}
	return all
}

func ipSockets() [][]test {
	stream, datagram := ofType(abi.SOCK_STREAM), ofType(abi.SOCK_DGRAM)
	// AF_INET and AF_INET6 differ by one bit.
	family := test{0, lowHalf &^ (abi.AF_INET ^ abi.AF_INET6), abi.AF_INET & abi.AF_INET6}
	return [][]test{
		{stream, family, is(2, 0)},
		{stream, family, is(2, abi.IPPROTO_TCP)},
		{datagram, family, is(2, 0)},
		{datagram, family, is(2, abi.IPPROTO_UDP)},
	}
}

func ofType(kind uint64) test { return test{1, lowHalf &^ socketFlags, kind} }

// missing returns the calls that fail with ENOSYS: programs know how to do without them on
// kernels that do not have them.
func missing() map[string]int {
	m := map[string]int{
		// The flags of clone3 are in memory, where a filter cannot see them. Programs use
		// clone instead.
		"clone3": abi.SYS_CLONE3,
		// inotify reveals what others open and execute. Programs poll instead.
		"inotify_add_watch": abi.SYS_INOTIFY_ADD_WATCH,
		"inotify_init1":     abi.SYS_INOTIFY_INIT1,
		"inotify_rm_watch":  abi.SYS_INOTIFY_RM_WATCH,
		// A timer could send any signal, even one that wakes a stopped program. For nearly
		// all programs setitimer is enough.
		"timer_create": abi.SYS_TIMER_CREATE,
		"seccomp":      abi.SYS_SECCOMP,
	}
	maps.Copy(m, archMissing())
	return m
}

// needless returns the calls that succeed without being made. They would do nothing for
// the program, all of whose files are in memory, and would only load the machine's disks
// and caches.
func needless() map[string]int {
	return map[string]int{
		"fadvise64":       abi.SYS_FADVISE64,
		"fdatasync":       abi.SYS_FDATASYNC,
		"fsync":           abi.SYS_FSYNC,
		"sync":            abi.SYS_SYNC,
		"sync_file_range": abi.SYS_SYNC_FILE_RANGE,
		"syncfs":          abi.SYS_SYNCFS,
	}
}
