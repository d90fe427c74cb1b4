package seccomp

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// A rule says what becomes of a call that is not simply allowed or refused.
type rule struct {
	name   string
	number int
	// allowed are alternatives: the call is made if every test of one of them holds.
	allowed [][]test
	// otherwise is what the call answers if none holds. With 0 the call succeeds and does
	// nothing. A profile can say no more than EPERM for a call that has alternatives.
	otherwise unix.Errno
}

// A test holds if an argument has the value in the bits of the mask.
type test struct {
	argument    int
	mask, value uint64
}

// lowHalf is the part of an argument that the kernel looks at if it is an int.
const lowHalf = 0xffffffff

// is holds if an argument that is an int has the value.
func is(argument int, value uint64) test { return test{argument, lowHalf, value} }

// upTo holds if an argument that is an int has the value in all bits but the lowest ones:
// it is one of 1<<low values that follow each other.
func upTo(argument int, value uint64, low int) test {
	return test{argument, lowHalf &^ (1<<low - 1), value}
}

// without holds if an argument has none of the bits.
func without(argument int, bits uint64) test { return test{argument, bits, 0} }

// each makes an alternative of every test.
func each(tests ...test) [][]test {
	var alternatives [][]test
	for _, t := range tests {
		alternatives = append(alternatives, []test{t})
	}
	return alternatives
}

// allBut are alternatives of which one holds unless the low bits of an argument are those
// of the value: then each of those bits is another one. An alternative cannot say "not".
func allBut(argument int, value uint64, bits int) [][]test {
	var alternatives [][]test
	for bit := range bits {
		alternatives = append(alternatives, []test{{argument, 1 << bit, ^value & (1 << bit)}})
	}
	return alternatives
}

// also adds a test in front of every alternative.
func also(t test, alternatives [][]test) [][]test {
	var all [][]test
	for _, a := range alternatives {
		all = append(all, append([]test{t}, a...))
	}
	return all
}

// rules are the rules for all calls that have one.
func rules() []rule {
	r := []rule{
		{"clone", unix.SYS_CLONE, clones(), unix.EPERM},
		{"fcntl", unix.SYS_FCNTL, commands(), unix.EPERM},
		// Pages that the kernel merges with equal ones of others tell of them.
		{"madvise", unix.SYS_MADVISE, allBut(2, unix.MADV_MERGEABLE, 4), unix.EPERM},
		// Huge pages come out of a reserve of the whole machine's.
		{"memfd_create", unix.SYS_MEMFD_CREATE, each(without(1, unix.MFD_HUGETLB)), unix.EPERM},
		{"mmap", unix.SYS_MMAP, each(without(3, unix.MAP_HUGETLB)), unix.EPERM},
		{"shmget", unix.SYS_SHMGET, each(without(2, shmHugeTLB)), unix.EPERM},
		// The ordinary one, with and without fixed addresses, and the question which it is.
		{"personality", unix.SYS_PERSONALITY, each(is(0, 0), is(0, 0x0040000), is(0, 0xffffffff)), unix.EPERM},
		{"prctl", unix.SYS_PRCTL, options(), unix.EPERM},
		{"socket", unix.SYS_SOCKET, append(unixSockets(), ipSockets()...), unix.EPERM},
		{"socketpair", unix.SYS_SOCKETPAIR, unixSockets(), unix.EPERM},
		// A limit of 1 on core dumps keeps a handler on the host from being run for them, a
		// limit of 0 does not. So no program may change it.
		{"setrlimit", unix.SYS_SETRLIMIT, allBut(0, unix.RLIMIT_CORE, 4), unix.EPERM},
		// The following calls take other processes, the supervisor too, which is of the same
		// user. Process 0 is the caller.
		{"prlimit64", unix.SYS_PRLIMIT64, also(is(0, 0), append(allBut(1, unix.RLIMIT_CORE, 4), []test{{2, ^uint64(0), 0}})), unix.EPERM},
		{"setpriority", unix.SYS_SETPRIORITY, [][]test{{upTo(0, unix.PRIO_PROCESS, 1), is(1, 0)}}, unix.EPERM}, // and PRIO_PGRP
	}
	for name, number := range map[string]int{
		"sched_setaffinity":  unix.SYS_SCHED_SETAFFINITY,
		"sched_setattr":      unix.SYS_SCHED_SETATTR,
		"sched_setparam":     unix.SYS_SCHED_SETPARAM,
		"sched_setscheduler": unix.SYS_SCHED_SETSCHEDULER,
	} {
		r = append(r, rule{name, number, each(is(0, 0)), unix.EPERM})
	}
	for name, number := range missing() {
		r = append(r, rule{name, number, nil, unix.ENOSYS})
	}
	for name, number := range needless() {
		r = append(r, rule{name, number, nil, 0})
	}
	slices.SortFunc(r, func(a, b rule) int { return a.number - b.number })
	return r
}

const (
	namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	// endSignal are the bits for the signal that tells a parent of its child's end.
	endSignal = 0xff

	shmHugeTLB = 0o4000

	// socketFlags may be in the type of a socket.
	socketFlags = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
)

// clones make processes and threads, but no namespaces, no siblings of the caller, whose
// parent is outside the sandbox, and no signal but SIGCHLD at the end: SIGCONT would make
// a stopped parent run.
func clones() [][]test {
	const looked = namespaceFlags | unix.CLONE_PARENT | endSignal
	return each(test{0, looked, 0}, test{0, looked, uint64(unix.SIGCHLD)})
}

// commands of fcntl leave out those that have signals sent: F_SETOWN and F_SETSIG, which
// would make a stopped program run, F_SETLEASE, and F_NOTIFY, which tells what others do
// in a directory.
func commands() [][]test {
	return each(
		upTo(1, unix.F_DUPFD, 3),         // to F_SETLKW
		upTo(1, unix.F_OFD_GETLK, 2),     // to F_OFD_SETLKW
		upTo(1, unix.F_DUPFD_CLOEXEC, 1), // and F_SETPIPE_SZ
		upTo(1, unix.F_GETPIPE_SZ, 1),    // and F_ADD_SEALS
		is(1, unix.F_GET_SEALS),
	)
}

// options of prctl leave out PR_SET_SECCOMP, as further filters would take of what the
// machine has for translated ones, PR_SCHED_CORE, which keeps other processes from a
// processor's other half, PR_SET_SYSCALL_USER_DISPATCH, and all that are younger than
// this list.
func options() [][]test {
	return each(
		upTo(0, 0, 4),                // PR_SET_PDEATHSIG to PR_SET_NAME
		upTo(0, 32, 4),               // PR_TASK_PERF_EVENTS_ENABLE to PR_CAP_AMBIENT
		upTo(0, unix.PR_GET_NAME, 2), // to PR_GET_ENDIAN
		upTo(0, unix.PR_CAPBSET_DROP, 3),
		upTo(0, 48, 3), // PR_SVE_SET_VL to PR_SET_TAGGED_ADDR_CTRL
		is(0, unix.PR_GET_SECCOMP),
		is(0, unix.PR_CAPBSET_READ),
	)
}

// unixSockets and ipSockets leave out all families and protocols for which the kernel
// could look for a module, raw sockets, and multipath TCP.
func unixSockets() [][]test {
	var all [][]test
	for _, kind := range []uint64{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET} {
		all = append(all, []test{is(0, unix.AF_UNIX), is(2, 0), ofType(kind)})
	}
	return all
}

func ipSockets() [][]test {
	stream, datagram := ofType(unix.SOCK_STREAM), ofType(unix.SOCK_DGRAM)
	// AF_INET and AF_INET6 differ by one bit.
	family := test{0, lowHalf &^ (unix.AF_INET ^ unix.AF_INET6), unix.AF_INET & unix.AF_INET6}
	return [][]test{
		{stream, family, is(2, 0)},
		{stream, family, is(2, unix.IPPROTO_TCP)},
		{datagram, family, is(2, 0)},
		{datagram, family, is(2, unix.IPPROTO_UDP)},
	}
}

func ofType(kind uint64) test { return test{1, lowHalf &^ socketFlags, kind} }

// missing are calls that programs do without where the kernel does not have them.
func missing() map[string]int {
	m := map[string]int{
		// Its flags are in memory, where a filter cannot see them; clone does the same.
		"clone3": unix.SYS_CLONE3,
		// It tells what others open and execute. Programs look again and again instead.
		"inotify_add_watch": unix.SYS_INOTIFY_ADD_WATCH,
		"inotify_init1":     unix.SYS_INOTIFY_INIT1,
		"inotify_rm_watch":  unix.SYS_INOTIFY_RM_WATCH,
		// Timers with a signal of choice would make a stopped program run. setitimer does
		// for nearly all.
		"timer_create": unix.SYS_TIMER_CREATE,
		"seccomp":      unix.SYS_SECCOMP,
	}
	maps.Copy(m, archMissing())
	return m
}

// needless are calls that succeed without being made: all that a program can write to is
// in memory, and everything else that they do is to the machine's disks and caches.
func needless() map[string]int {
	return map[string]int{
		"fadvise64":       unix.SYS_FADVISE64,
		"fdatasync":       unix.SYS_FDATASYNC,
		"fsync":           unix.SYS_FSYNC,
		"sync":            unix.SYS_SYNC,
		"sync_file_range": unix.SYS_SYNC_FILE_RANGE,
		"syncfs":          unix.SYS_SYNCFS,
	}
}
