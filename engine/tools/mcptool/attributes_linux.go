package mcptool

import "syscall"

// attributes give a command a session of its own. The kernel kills it when the thread that has started it ends,
// and so however this server ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
