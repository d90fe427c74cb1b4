// Package seccomp holds the one list of system calls that a program in a sandbox
// may make, as a filter program for the kernel and as a profile for container
// engines. Everything else fails: with ENOSYS where programs have another way to go
// (clone3), with EPERM otherwise.
package seccomp

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const (
	retAllow = unix.SECCOMP_RET_ALLOW
	retKill  = unix.SECCOMP_RET_KILL_PROCESS
	retEPERM = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	// glibc and others fall back from clone3, whose flags a filter cannot see.
	retENOSYS = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)

	// Offsets in struct seccomp_data; the low half of an argument comes first.
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16

	// x32 calls on amd64 have numbers from here on.
	x32Bit = 0x40000000

	namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
)

// families are the kinds of socket that programs may make.
func families() []uint32 { return []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6} }

// personalities are the ordinary one, with and without fixed addresses, and the
// question which it is.
func personalities() []uint32 { return []uint32{0, 0x0040000, 0xffffffff} }

// Filter returns the filter as an array of struct sock_filter in the byte order
// of this machine.
func Filter() ([]byte, error) {
	raw, err := bpf.Assemble(program())
	if err != nil {
		return nil, fmt.Errorf("assemble seccomp filter: %w", err)
	}
	out := make([]byte, 0, 8*len(raw))
	for _, i := range raw {
		out = binary.NativeEndian.AppendUint16(out, i.Op)
		out = append(out, i.Jt, i.Jf)
		out = binary.NativeEndian.AppendUint32(out, i.K)
	}
	return out, nil
}

func program() []bpf.Instruction {
	p := []bpf.Instruction{
		// Another architecture's calls (32-bit entry) have other numbers.
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: retKill},
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32Bit, SkipTrue: 1},
		bpf.RetConstant{Val: retEPERM},
	}
	p = append(p, answer(unix.SYS_CLONE3, retENOSYS)...)
	// clone makes processes and threads, but no namespaces.
	p = append(p, checked(unix.SYS_CLONE, 0,
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: namespaceFlags, SkipFalse: 1},
		bpf.RetConstant{Val: retEPERM},
		bpf.RetConstant{Val: retAllow})...)
	p = append(p, checked(unix.SYS_SOCKET, 0, oneOf(families()...)...)...)
	p = append(p, checked(unix.SYS_PERSONALITY, 0, oneOf(personalities()...)...)...)
	// In runs of numbers, since the kernel translates and tries the whole filter for
	// every process that installs it.
	numbers := slices.Sorted(maps.Values(calls()))
	for len(numbers) > 0 {
		run := 1
		for run < len(numbers) && numbers[run] == numbers[0]+run {
			run++
		}
		p = append(p,
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: uint32(numbers[0]), SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: uint32(numbers[run-1]), SkipTrue: 1},
			bpf.RetConstant{Val: retAllow})
		numbers = numbers[run:]
	}
	return append(p, bpf.RetConstant{Val: retEPERM})
}

// answer ends the program with ret if the call is number.
func answer(number int, ret uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(number), SkipTrue: 1},
		bpf.RetConstant{Val: ret},
	}
}

// checked runs checks, which must end the program, on the low half of an argument
// if the call is number.
func checked(number, argument int, checks ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(number), SkipTrue: uint8(len(checks) + 1)},
		bpf.LoadAbsolute{Off: uint32(offsetArgs + 8*argument), Size: 4},
	}, checks...)
}

// oneOf allows the values and refuses all others.
func oneOf(values ...uint32) []bpf.Instruction {
	var p []bpf.Instruction
	for _, v := range values {
		p = append(p, answer(int(v), retAllow)...)
	}
	return append(p, bpf.RetConstant{Val: retEPERM})
}
