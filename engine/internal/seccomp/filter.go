// Package seccomp holds the list of the system calls that a program in a sandbox may make.
// It returns the list as a filter for the kernel and as a profile for container engines.
// Every other call fails: with ENOSYS if programs then fall back to another one, as for
// clone3, otherwise with EPERM. Some calls, such as sync, succeed without being made.
package seccomp

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"syscall"

	"golang.org/x/net/bpf"

	"fermata/engine/internal/seccomp/abi"
)

const (
	retAllow = abi.SECCOMP_RET_ALLOW
	retKill  = abi.SECCOMP_RET_KILL_PROCESS
	retErrno = abi.SECCOMP_RET_ERRNO

	// Offsets in struct seccomp_data. The low half of an argument comes first.
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16

	// The numbers of x32 calls on amd64 begin here.
	x32Bit = 0x40000000
)

// Filter returns the filter as an array of struct sock_filter, in the byte order of this
// machine.
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
		// The calls of another architecture, such as 32-bit calls, have other numbers.
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: retKill},
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32Bit, SkipTrue: 1},
		bpf.RetConstant{Val: errno(abi.EPERM)},
	}
	return append(p, search(runs())...)
}

// A run is a sequence of consecutive numbers of calls with the same answer: the
// instructions that decide what becomes of such a call. It ends where the next run begins.
type run struct {
	first  int
	answer []bpf.Instruction
}

// runs divides all numbers, from 0 on, into runs.
func runs() []run {
	answers := map[int][]bpf.Instruction{}
	for _, number := range calls() {
		answers[number] = []bpf.Instruction{bpf.RetConstant{Val: retAllow}}
	}
	for _, r := range rules() {
		answers[r.number] = r.answer()
	}
	refused := []bpf.Instruction{bpf.RetConstant{Val: errno(abi.EPERM)}}
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

// search returns a binary search for the run of a number. It has to be fast: the kernel
// runs the filter for every number when a process installs it, and later at each call
// whose answer depends on the arguments.
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

func errno(number syscall.Errno) uint32 { return retErrno | uint32(number) }

// answer returns the instructions that apply a rule. They end the filter program.
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

// A half is the part of a test that concerns one half of an argument: the registers of the
// kernel's virtual machine have 32 bits.
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

// anyOf returns instructions that allow the call if all tests of one alternative hold.
// Otherwise execution continues behind them. Alternatives that begin with the same test
// share it.
func anyOf(alternatives [][]half) []bpf.Instruction {
	var p []bpf.Instruction
	var loaded half // the offset and the mask of the register's content
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
			loaded = half{} // The tests that follow this one have changed the register.
		}
		alternatives = others
	}
	return p
}

// check returns the content that the register must have, and the instruction that checks
// it. If the test does not hold, that instruction skips the given number of instructions.
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
