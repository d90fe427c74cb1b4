package seccomp

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// archCalls returns the older calls that only this architecture has.
func archCalls() map[string]int {
	return map[string]int{
		"access":       unix.SYS_ACCESS,
		"alarm":        unix.SYS_ALARM,
		"arch_prctl":   unix.SYS_ARCH_PRCTL,
		"chmod":        unix.SYS_CHMOD,
		"chown":        unix.SYS_CHOWN,
		"creat":        unix.SYS_CREAT,
		"dup2":         unix.SYS_DUP2,
		"epoll_create": unix.SYS_EPOLL_CREATE,
		"epoll_wait":   unix.SYS_EPOLL_WAIT,
		"eventfd":      unix.SYS_EVENTFD,
		"fork":         unix.SYS_FORK,
		"futimesat":    unix.SYS_FUTIMESAT,
		"getdents":     unix.SYS_GETDENTS,
		"getpgrp":      unix.SYS_GETPGRP,
		"lchown":       unix.SYS_LCHOWN,
		"link":         unix.SYS_LINK,
		"lstat":        unix.SYS_LSTAT,
		"mkdir":        unix.SYS_MKDIR,
		"mknod":        unix.SYS_MKNOD,
		"newfstatat":   unix.SYS_NEWFSTATAT,
		"open":         unix.SYS_OPEN,
		"pause":        unix.SYS_PAUSE,
		"pipe":         unix.SYS_PIPE,
		"poll":         unix.SYS_POLL,
		"readlink":     unix.SYS_READLINK,
		"rename":       unix.SYS_RENAME,
		"rmdir":        unix.SYS_RMDIR,
		"select":       unix.SYS_SELECT,
		"signalfd":     unix.SYS_SIGNALFD,
		"stat":         unix.SYS_STAT,
		"symlink":      unix.SYS_SYMLINK,
		"time":         unix.SYS_TIME,
		"unlink":       unix.SYS_UNLINK,
		"utime":        unix.SYS_UTIME,
		"utimes":       unix.SYS_UTIMES,
		"vfork":        unix.SYS_VFORK,
	}
}

// archMissing returns the older calls that only this architecture has and that fail as if
// the kernel did not have them.
func archMissing() map[string]int { return map[string]int{"inotify_init": unix.SYS_INOTIFY_INIT} }
