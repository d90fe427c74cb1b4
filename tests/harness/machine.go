package harness

import (
	"cmp"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"
)

// InCI says that this is a run of CI, in which nothing may be missing on the machine: a test
// that needs what a developer's machine may lack fails there and is skipped elsewhere.
var InCI = os.Getenv("CI") != ""

// Python returns the interpreter for programs: PYTHON, or else the system's, which is more likely
// to have the libraries than another one on the path.
func Python() string {
	const system = "/usr/bin/python3"
	if _, err := os.Stat(system); err != nil {
		return cmp.Or(os.Getenv("PYTHON"), "python3")
	}
	return cmp.Or(os.Getenv("PYTHON"), system)
}

func hasRedis() bool {
	_, err := exec.LookPath("redis-server")
	return err == nil || InCI
}

// sandboxesHere returns how many of the sandboxes this machine has.
func sandboxesHere() int {
	if HasDocker() {
		return 2
	}
	return 1
}

// storesHere returns how many of the stores this machine has.
func storesHere() int {
	if hasRedis() {
		return 2
	}
	return 1
}

// needRedis skips a test if the machine has no Redis.
func needRedis(t *testing.T) {
	t.Helper()
	if !hasRedis() {
		t.Skip("redis-server is not installed")
	}
}

// scientific matches programs that use numpy, pandas or matplotlib, also by the names np, pd and
// plt, which are ready without an import.
var scientific = regexp.MustCompile(`\b(np|pd|plt|numpy|pandas|matplotlib)\b`)

// HasLibraries reports whether programs of process sandboxes have numpy, pandas, matplotlib and openpyxl.
var HasLibraries = sync.OnceValue(func() bool {
	return InCI || exec.Command(Python(), "-c", "import numpy, pandas, matplotlib, openpyxl").Run() == nil
})

// needLibraries skips a test if its program uses libraries that the machine lacks.
func needLibraries(t testing.TB, code string) {
	t.Helper()
	if scientific.MatchString(code) && !HasLibraries() {
		t.Skipf("%s lacks numpy, pandas, matplotlib or openpyxl", Python())
	}
}

// Chromium returns the path of the browser, and skips the test if the machine has none.
func Chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if InCI {
		t.Fatal("chromium is not installed")
	}
	t.Skip("chromium is not installed")
	return ""
}
