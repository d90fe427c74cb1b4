package seccomp

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// TestFilterFits holds the filter to the kernel's limit for one program.
func TestFilterFits(t *testing.T) {
	f, err := Filter()
	if err != nil {
		t.Fatal(err)
	}
	if len(f)%8 != 0 || len(f)/8 > 4096 {
		t.Errorf("filter has %d bytes, want a multiple of 8 for at most 4096 instructions", len(f))
	}
}

// TestFilterAllows tries every number but those whose arguments count, too: the ones on
// the list are allowed, all others are refused.
func TestFilterAllows(t *testing.T) {
	vm, err := bpf.NewVM(program())
	if err != nil {
		t.Fatal(err)
	}
	listed := slices.Collect(maps.Values(calls()))
	looked := []int{unix.SYS_CLONE, unix.SYS_CLONE3, unix.SYS_SOCKET, unix.SYS_PERSONALITY}
	for number := range 1024 {
		if slices.Contains(looked, number) {
			continue
		}
		// The machine is that of network packets, and reads their byte order.
		data := make([]byte, 64)
		binary.BigEndian.PutUint32(data[offsetNumber:], uint32(number))
		binary.BigEndian.PutUint32(data[offsetArch:], auditArch)
		got, err := vm.Run(data)
		if err != nil {
			t.Fatal(err)
		}
		want := retEPERM
		if slices.Contains(listed, number) {
			want = retAllow
		}
		if uint32(got) != want {
			t.Errorf("call %d gets %#x, want %#x", number, got, want)
		}
	}
}
