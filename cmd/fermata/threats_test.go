package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThreatsAreTested reads the table of threats to toolsets: it has all of them, and each test that it
// names is in its folder.
func TestThreatsAreTested(t *testing.T) {
	const page = "../../tests/toolsets/README.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	word := regexp.MustCompile("`([a-z/]+)`: |\\b((?:Test|Fuzz)[A-Za-z0-9]+)")
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| T") {
			continue
		}
		rows++
		if want := fmt.Sprintf("| T%d", rows); cells[0] != want || len(cells) < 3 {
			t.Errorf("%s: got %q, want the row of %s", page, line, want)
			continue
		}
		folder, named := "", 0
		for _, m := range word.FindAllStringSubmatch(cells[2], -1) {
			if m[1] != "" {
				folder = m[1]
				continue
			}
			named++
			if !hasTest(t, folder, m[2]) {
				t.Errorf("%s: %s names %s, which is not in %s", page, cells[0], m[2], folder)
			}
		}
		if named == 0 {
			t.Errorf("%s: %s names no test", page, cells[0])
		}
	}
	if rows != 33 {
		t.Errorf("%s has %d threats, want 33", page, rows)
	}
}

// hasTest reports whether a folder of the module has a test or fuzz target of this name.
func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
