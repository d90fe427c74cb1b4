package filename_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"fermata/engine/filename"
)

// TestCheck uses the same cases as the tests of the runner.
func TestCheck(t *testing.T) {
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
		if err := filename.Check(name); err != nil {
			t.Errorf("Check(%q) = %v, want nil", name, err)
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
		err := filename.Check(c.Name)
		got, ok := errors.AsType[*filename.NameError](err)
		if !ok || got.Reason != c.Server {
			t.Errorf("Check(%q) = %v, want %q", c.Name, err, c.Server)
		}
	}
}
