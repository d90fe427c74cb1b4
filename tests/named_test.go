package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// namedTest matches a test in a text, and the package that it says it is in.
var namedTest = regexp.MustCompile("`(Test\\w+)`(?: in `([\\w/]+)`)?")

// TestNamedTests checks that the tests that texts name as their witnesses are there.
func TestNamedTests(t *testing.T) {
	t.Parallel()
	there := map[string]string{} // what the tests of a package are, by its directory
	read := func(dir string) string {
		if text, ok := there[dir]; ok {
			return text
		}
		files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(dir), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		there[dir] = all.String()
		return all.String()
	}
	for _, name := range slices.Concat(core, survivors) {
		if !strings.Contains(read("tests"), "\nfunc "+name+"(t *testing.T) {") {
			t.Errorf("the setups name %s, which is not there", name)
		}
	}
	for _, tc := range []struct {
		file  string
		least int
	}{{"docs/reliability.md", 30}, {"docs/librechat.md", 30}} {
		text, err := os.ReadFile(filepath.Join("..", tc.file))
		if err != nil {
			t.Fatal(err)
		}
		named := namedTest.FindAllStringSubmatch(string(text), -1)
		if len(named) < tc.least {
			t.Errorf("%s names %d tests, want at least %d: is this the way it names them?", tc.file, len(named), tc.least)
		}
		for _, m := range named {
			dir := m[2]
			if dir == "" {
				dir = "tests"
			}
			if !strings.Contains(read(dir), "\nfunc "+m[1]+"(t *testing.T) {") {
				t.Errorf("%s names %s in %s, which is not there", tc.file, m[1], dir)
			}
		}
	}
}
