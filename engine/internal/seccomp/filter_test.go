package seccomp

import "testing"

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
