// Package seccomp holds the one list of system calls that a program in a sandbox
// may make, as a filter program for the kernel and as a profile for container
// engines. Everything else fails: with ENOSYS where programs have another way to go
// (clone3), with EPERM otherwise. Some calls succeed without being made (sync).
package seccomp

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const (
	retAllow = unix.SECCOMP_RET_ALLOW
	retKill  = unix.SECCOMP_RET_KILL_PROCESS
	retErrno = unix.SECCOMP_RET_ERRNO

	// Offsets in struct seccomp_data; the low half of an argument comes first.
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16

	// x32 calls on amd64 have numbers from here on.
	x32Bit = 0x40000000
)

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
		bpf.RetConstant{Val: errno(unix.EPERM)},
	}
	return append(p, search(runs())...)
}

// A run are calls with numbers that follow each other, and what becomes of them all.
type run struct {
	first  int
	answer []bpf.Instruction
}

// runs returns the runs of all numbers, from 0 on.
func runs() []run {
	answers := map[int][]bpf.Instruction{}
	for _, number := range calls() {
		answers[number] = []bpf.Instruction{bpf.RetConstant{Val: retAllow}}
	}
	for _, r := range rules() {
		answers[r.number] = r.answer()
	}
	refused := []bpf.Instruction{bpf.RetConstant{Val: errno(unix.EPERM)}}
	all := []run{{0, refused}}
	for number := range slices.Max(slices.Collect(maps.Keys(answers))) + 2 {
		answer, ok := answers[number]
		if !ok {
			answer = refused
		}
		if !slices.Equal(answer, all[len(all)-1].answer) {
			all = append(all, run{number, answer})
		}
	}
	return all
}

// search finds the run that a number is in by halves: the kernel tries every number
// when a process installs the filter, and those with rules at each call.
func search(runs []run) []bpf.Instruction {
	if len(runs) == 1 {
		return runs[0].answer
	}
	middle := len(runs) / 2
	below, above := search(runs[:middle]), search(runs[middle:])
	p := []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: uint32(runs[middle].first), SkipTrue: 1},
		bpf.Jump{Skip: uint32(len(below))},
	}
	if len(below) <= math.MaxUint8 {
		p = []bpf.Instruction{
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: uint32(runs[middle].first), SkipTrue: uint8(len(below))},
		}
	}
	return slices.Concat(p, below, above)
}

func errno(number unix.Errno) uint32 { return retErrno | uint32(number) }

// answer returns the instructions of a rule, which end the program.
func (r rule) answer() []bpf.Instruction {
	var alternatives [][]half
	for _, tests := range r.allowed {
		var halves []half
		for _, t := range tests {
			halves = append(halves, t.halves()...)
		}
		alternatives = append(alternatives, halves)
	}
	return append(anyOf(alternatives), bpf.RetConstant{Val: errno(r.otherwise)})
}

// A half is what a test says of one half of an argument; the kernel's machine has
// registers of 32 bits.
type half struct{ offset, mask, value uint32 }

func (t test) halves() []half {
	offset := uint32(offsetArgs + 8*t.argument)
	var halves []half
	if mask := uint32(t.mask); mask != 0 {
		halves = append(halves, half{offset, mask, uint32(t.value)})
	}
	if mask := uint32(t.mask >> 32); mask != 0 {
		halves = append(halves, half{offset + 4, mask, uint32(t.value >> 32)})
	}
	return halves
}

// anyOf ends the program with permission if all tests of one alternative hold, and
// goes on behind its last instruction if not. Alternatives that begin with the same
// test are tried together.
func anyOf(alternatives [][]half) []bpf.Instruction {
	var p []bpf.Instruction
	var loaded half // what the register has, apart from the value
	for len(alternatives) > 0 {
		first := alternatives[0]
		if len(first) == 0 {
			return append(p, bpf.RetConstant{Val: retAllow})
		}
		var together, others [][]half
		for _, a := range alternatives {
			if len(a) > 0 && a[0] == first[0] {
				together = append(together, a[1:])
			} else {
				others = append(others, a)
			}
		}
		then := anyOf(together)
		need, check := first[0].check(uint8(len(then)))
		if need != loaded {
			p = append(p, bpf.LoadAbsolute{Off: need.offset, Size: 4})
			if need.mask != lowHalf {
				p = append(p, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: need.mask})
			}
			loaded = need
		}
		p = append(append(p, check), then...)
		if len(then) > 1 {
			loaded = half{} // The tests behind this one have changed it.
		}
		alternatives = others
	}
	return p
}

// check returns what the register must have and the instruction that looks at it. If
// the test does not hold it skips as many instructions.
func (h half) check(skip uint8) (half, bpf.Instruction) {
	whole := half{h.offset, lowHalf, 0}
	switch {
	case h.value == 0:
		return whole, bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: h.mask, SkipFalse: skip}
	case h.value == h.mask && h.mask&(h.mask-1) == 0:
		return whole, bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: h.mask, SkipFalse: skip}
	default:
		return half{h.offset, h.mask, 0}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: h.value, SkipFalse: skip}
	}
}
