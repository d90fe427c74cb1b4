package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedTest matches the name of a test in a document, and the package that the document says
// it is in.
var namedTest = regexp.MustCompile("`(Test\\w+)`(?: in `([\\w/]+)`)?")

// TestNamedTests checks that the tests that the documents name as their evidence exist.
func TestNamedTests(t *testing.T) {
	t.Parallel()
	known := map[string]string{} // the text of all tests that match a pattern
	read := func(pattern string) string {
		if text, ok := known[pattern]; ok {
			return text
		}
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
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
		known[pattern] = all.String()
		return all.String()
	}
	for _, tc := range []struct {
		file  string
		least int
	}{{"docs/reliability.md", 30}, {"docs/librechat.md", 30}} {
		text, err := os.ReadFile(filepath.Join("..", "..", tc.file))
		if err != nil {
			t.Fatal(err)
		}
		named := namedTest.FindAllStringSubmatch(string(text), -1)
		if len(named) < tc.least {
			t.Errorf("%s names %d tests, want at least %d: is this the way it names them?", tc.file, len(named), tc.least)
		}
		for _, m := range named {
			where, pattern := m[2], m[2]+"/*_test.go"
			if where == "" || where == "tests" {
				where, pattern = "any folder of tests", "tests/*/*_test.go"
			}
			if !strings.Contains(read(pattern), "\nfunc "+m[1]+"(t *testing.T) {") {
				t.Errorf("%s names %s in %s, which does not exist", tc.file, m[1], where)
			}
		}
	}
}
