package seccomp

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// archCalls are the calls that this architecture has under a name of its own.
func archCalls() map[string]int {
	return map[string]int{
		"newfstatat": unix.SYS_FSTATAT,
	}
}
