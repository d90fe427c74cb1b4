package files_test

import (
	"testing"

	"fermata/engine/files"
)

func TestNewID(t *testing.T) {
	seen := map[string]bool{}
	used := map[rune]bool{}
	for range 1000 {
		id := files.NewID()
		if !files.ValidID(id) || len(id) != 21 {
			t.Fatalf("%q is no id", id)
		}
		seen[id] = true
		for _, r := range id {
			used[r] = true
		}
	}
	if len(seen) != 1000 || len(used) != 64 {
		t.Errorf("1000 ids: %d differ and have %d characters, want 1000 and 64", len(seen), len(used))
	}
}
