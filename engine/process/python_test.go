//go:build linux

package process

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fermata check tells of an interpreter what it lacks, and what it is if it is none of those that are tested.
func TestCheckPython(t *testing.T) {
	const whole = `{"implementation":"cpython","ctypes":true,"modules":[],"names":[],"libraries":[]}`
	for _, c := range []struct {
		version, says string
		states        string
		parts         []string
	}{
		{"3.11.0", whole, "ok ok ok", []string{"nothing is left out", "sklearn, openpyxl"}},
		{"3.14.6", whole, "ok ok ok", nil},
		{"3.15.0", whole, "weaker ok ok", []string{"newer than those", "from 3.11 to 3.14"}},
		{"3.11.0", `{"implementation":"pypy","ctypes":true}`, "weaker ok ok", []string{"it is pypy and not CPython"}},
		{"3.14.0", `{"implementation":"cpython","ctypes":true,"free_threaded":true}`, "weaker ok ok", []string{"without the global lock"}},
		{
			"3.14.0", `{"implementation":"cpython","ctypes":true,"modules":["sqlite3"],"names":["os.pidfd_open"],"libraries":["numpy","openpyxl"]}`, "ok weaker weaker",
			[]string{"built without sqlite3, os.pidfd_open:", "do without numpy, openpyxl"},
		},
		{"3.12.0", `{"implementation":"cpython","ctypes":false}`, "missing", []string{"without ctypes", "libffi-dev"}},
	} {
		name := filepath.Join(t.TempDir(), "python3")
		if err := os.WriteFile(name, []byte("#!/bin/sh\necho '"+c.says+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		var states, said []string
		for _, f := range checkPython(t.Context(), interpreter{name, c.version}) {
			if f.What != "namespaces" { // it depends on the machine
				states, said = append(states, string(f.State)), append(said, f.Detail, f.Remedy)
			}
		}
		text := strings.Join(said, "\n")
		if got := strings.Join(states, " "); got != c.states {
			t.Errorf("%s, %s: the states are %q, want %q", c.version, c.says, got, c.states)
		}
		for _, part := range c.parts {
			if !strings.Contains(text, part) {
				t.Errorf("%s, %s: %q is not said, but\n%s", c.version, c.says, part, text)
			}
		}
	}
}

// What the survey finds of a real interpreter is right.
func TestSurvey(t *testing.T) {
	python, err := findPython(t.Context(), cmp.Or(os.Getenv("PYTHON"), "python3"))
	if err != nil {
		t.Skipf("needs Python: %v", err)
	}
	found, err := python.survey(t.Context())
	if err != nil || found.Implementation != "cpython" || !found.Ctypes || found.FreeThreaded {
		t.Errorf("survey = %+v, %v", found, err)
	}
	broken := filepath.Join(t.TempDir(), "python3")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho a >&2; echo 'ModuleNotFoundError: json' >&2; exit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := (interpreter{broken, "3.11"}).survey(t.Context()); err == nil || !strings.HasSuffix(err.Error(), ": ModuleNotFoundError: json") {
		t.Errorf("survey of a broken interpreter: %v", err)
	}
	findings := checkPython(t.Context(), interpreter{broken, "3.11"})
	for _, f := range findings {
		if strings.Contains(f.Remedy, "root") || !strings.Contains(f.Detail, "ModuleNotFoundError: json") {
			t.Errorf("of a broken interpreter: %+v", f)
		}
	}
}

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
