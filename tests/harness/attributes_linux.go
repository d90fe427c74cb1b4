package harness

import "syscall"

// dieWithParent are the attributes of a process that is killed when the tests end.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// ownMounts are the attributes of a process with mounts of its own.
func ownMounts() *syscall.SysProcAttr { return &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} }
