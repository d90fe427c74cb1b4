package process

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// An interpreter that programs could not use is refused, with the setting and what to do.
func TestFindPython(t *testing.T) {
	python := cmp.Or(os.Getenv("PYTHON"), "python3")
	path, err := exec.LookPath(python)
	if err != nil {
		t.Skipf("needs Python: %v", err)
	}
	script := func(lines string) string {
		name := filepath.Join(t.TempDir(), "python3")
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"+lines+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return name
	}
	temporary, err := os.MkdirTemp("/tmp", "fermata-test-") //nolint:usetesting // sandboxes cover it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temporary) })
	if out, err := exec.CommandContext(t.Context(), path, "-m", "venv", "--without-pip", temporary).CombinedOutput(); err != nil {
		t.Fatalf("make an interpreter: %v\n%s", err, out)
	}
	for _, c := range []struct {
		name  string
		parts []string
	}{
		{python, nil},
		{script(`exec ` + path + ` "$@"`), nil},
		{"python9", []string{"FERMATA_PYTHON", "executable file not found"}},
		{"/bin/ls", []string{"FERMATA_PYTHON", "exit status 2", "cannot access"}},
		{script("echo hello"), []string{"FERMATA_PYTHON", "is not a Python", "hello"}},
		{script("printf '/p\\n3.10.1\\n/usr\\n'"), []string{"/p (FERMATA_PYTHON) is Python 3.10.1, 3.11 or later"}},
		{script("printf '/p\\n3.11.1\\n/tmp\\n'"), []string{"needs /tmp,"}},
		{script("printf '/p\\n3.11.1\\n/tmpfs/x\\n'"), nil},
		{script("yes no | head -c 100000; exit 3"), []string{"exit status 3"}},
		{filepath.Join(temporary, "bin", "python3"), []string{"FERMATA_PYTHON", temporary, "a /tmp of its own", "-m venv /opt/"}},
	} {
		_, err := findPython(t.Context(), c.name)
		if (err == nil) != (c.parts == nil) {
			t.Errorf("findPython(%s) = %v, want an error with %q", c.name, err, c.parts)
			continue
		}
		for _, part := range c.parts {
			if text := err.Error(); !strings.Contains(text, part) || len(text) > 1000 {
				t.Errorf("findPython(%s) = %v, want a short error with %q", c.name, err, part)
			}
		}
	}
}
