package main

import (
	"errors"
	"io/fs"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// tick is the unit in which the kernel tells the processor time of processes that have ended.
// It is the same on all machines, whatever unit the kernel itself counts in.
const tick = 10 * time.Millisecond

// processorTime returns the processor time of a process and of all its descendants, including
// those that have ended. Other work on the machine changes it less than the time on the
// clock. It does not include containers, since Docker starts them.
func processorTime(pid int) (sum time.Duration, err error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return 0, err
	}
	var next []procfs.ProcStat
	children := map[int][]procfs.ProcStat{}
	for _, p := range processes {
		stat, err := p.Stat()
		if gone(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		children[stat.PPID] = append(children[stat.PPID], stat)
		if stat.PID == pid {
			next = append(next, stat)
		}
	}
	for len(next) > 0 {
		stat := next[0]
		next = append(next[1:], children[stat.PID]...)
		sum += tick * time.Duration(stat.CUTime+stat.CSTime)
		own, err := ownTime(stat.PID)
		if err != nil && !gone(err) {
			return 0, err
		}
		sum += own
	}
	return sum, nil
}

// ownTime returns the processor time of the threads of a process, in nanoseconds: a process
// that waits in the pool has used less than a tick.
func ownTime(pid int) (sum time.Duration, err error) {
	threads, err := procfs.AllThreads(pid)
	if err != nil {
		return 0, err
	}
	for _, thread := range threads {
		stat, err := thread.Schedstat()
		if err != nil && !gone(err) {
			return 0, err
		}
		sum += time.Duration(stat.RunningNanoseconds)
	}
	return sum, nil
}

// gone reports whether the error says that the process has ended meanwhile.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}
