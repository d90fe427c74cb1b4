package seccomp

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// archCalls are the calls that this architecture has under a name of its own.
func archCalls() map[string]int {
	return map[string]int{
		"newfstatat": unix.SYS_FSTATAT,
	}
}

// archMissing are the calls that only this architecture has and that programs are told
// are missing: none.
func archMissing() map[string]int { return nil }
