package harness

import (
	"cmp"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"
)

// What a machine may lack. A developer goes without, CI does not: there nothing is
// left out, so what is missing fails.
var InCI = os.Getenv("CI") != ""

// Python is the interpreter that programs run in: PYTHON, or the system's, which is
// more likely to have the libraries than others on the path.
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

// enginesHere is how many of the engines there are on this machine.
func enginesHere() int {
	if HasDocker() {
		return 2
	}
	return 1
}

// storesHere is how many of the stores there are on this machine.
func storesHere() int {
	if hasRedis() {
		return 2
	}
	return 1
}

// needRedis skips a test where there is no Redis.
func needRedis(t *testing.T) {
	t.Helper()
	if !hasRedis() {
		t.Skip("redis-server is not installed")
	}
}

// scientific matches programs that use numpy or pandas by the names they find ready.
var scientific = regexp.MustCompile(`\b(np|pd|numpy|pandas)\b`)

var hasLibraries = sync.OnceValue(func() bool {
	return InCI || exec.Command(Python(), "-c", "import numpy, pandas").Run() == nil
})

// needLibraries skips a test whose program uses libraries that are not installed.
func needLibraries(t testing.TB, code string) {
	t.Helper()
	if scientific.MatchString(code) && !hasLibraries() {
		t.Skipf("%s has no numpy and pandas", Python())
	}
}
