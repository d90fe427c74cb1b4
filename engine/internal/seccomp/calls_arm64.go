package seccomp

import "fermata/engine/internal/seccomp/abi"

const auditArch = abi.AUDIT_ARCH_AARCH64

// archCalls returns the calls that have another name on this architecture.
func archCalls() map[string]int {
	return map[string]int{
		"newfstatat": abi.SYS_NEWFSTATAT,
	}
}

// archMissing returns the calls that only this architecture has and that fail as if the
// kernel did not have them. There are none.
func archMissing() map[string]int { return nil }
