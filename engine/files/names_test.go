package files_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"fermata/engine/files"
)

// TestCheckName goes through the cases that the tests of the runner go through, too.
func TestCheckName(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "python", "testdata", "names.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases struct {
		Allowed []string
		Refused []struct{ Name, Hex, Server string }
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases.Allowed) == 0 || len(cases.Refused) == 0 {
		t.Fatal("names.json has no cases")
	}
	for _, name := range cases.Allowed {
		if err := files.CheckName(name); err != nil {
			t.Errorf("CheckName(%q) = %v, want nil", name, err)
		}
	}
	for _, c := range cases.Refused {
		if c.Hex != "" {
			name, err := hex.DecodeString(c.Hex)
			if err != nil {
				t.Fatal(err)
			}
			c.Name = string(name)
		}
		err := files.CheckName(c.Name)
		got, ok := errors.AsType[*files.NameError](err)
		if !ok || got.Reason != c.Server {
			t.Errorf("CheckName(%q) = %v, want %q", c.Name, err, c.Server)
		}
	}
}

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
