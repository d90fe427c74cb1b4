package seccomp

import "fermata/engine/internal/seccomp/abi"

const auditArch = abi.AUDIT_ARCH_X86_64

// archCalls returns the older calls that only this architecture has.
func archCalls() map[string]int {
	return map[string]int{
		"access":       abi.SYS_ACCESS,
		"alarm":        abi.SYS_ALARM,
		"arch_prctl":   abi.SYS_ARCH_PRCTL,
		"chmod":        abi.SYS_CHMOD,
		"chown":        abi.SYS_CHOWN,
		"creat":        abi.SYS_CREAT,
		"dup2":         abi.SYS_DUP2,
		"epoll_create": abi.SYS_EPOLL_CREATE,
		"epoll_wait":   abi.SYS_EPOLL_WAIT,
		"eventfd":      abi.SYS_EVENTFD,
		"fork":         abi.SYS_FORK,
		"futimesat":    abi.SYS_FUTIMESAT,
		"getdents":     abi.SYS_GETDENTS,
		"getpgrp":      abi.SYS_GETPGRP,
		"lchown":       abi.SYS_LCHOWN,
		"link":         abi.SYS_LINK,
		"lstat":        abi.SYS_LSTAT,
		"mkdir":        abi.SYS_MKDIR,
		"mknod":        abi.SYS_MKNOD,
		"newfstatat":   abi.SYS_NEWFSTATAT,
		"open":         abi.SYS_OPEN,
		"pause":        abi.SYS_PAUSE,
		"pipe":         abi.SYS_PIPE,
		"poll":         abi.SYS_POLL,
		"readlink":     abi.SYS_READLINK,
		"rename":       abi.SYS_RENAME,
		"rmdir":        abi.SYS_RMDIR,
		"select":       abi.SYS_SELECT,
		"signalfd":     abi.SYS_SIGNALFD,
		"stat":         abi.SYS_STAT,
		"symlink":      abi.SYS_SYMLINK,
		"time":         abi.SYS_TIME,
		"unlink":       abi.SYS_UNLINK,
		"utime":        abi.SYS_UTIME,
		"utimes":       abi.SYS_UTIMES,
		"vfork":        abi.SYS_VFORK,
	}
}

// archMissing returns the older calls that only this architecture has and that fail as if
// the kernel did not have them.
func archMissing() map[string]int { return map[string]int{"inotify_init": abi.SYS_INOTIFY_INIT} }
