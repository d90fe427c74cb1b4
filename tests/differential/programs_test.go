package differential

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"fermata/tests/harness"
)

// A program is a file below the folder programs, and what both sides need to know about it.
type program struct {
	name, code string
	// way is how plain Python runs it; plain/run.py tells the ways.
	way string
	// inputs are the files of the folder inputs that its text names.
	inputs []string
}

// libraries matches the names of libraries that not every Python has.
var libraries = regexp.MustCompile(`\b(np|numpy|pd|pandas|plt|matplotlib|scipy)\b`)

var hasLibraries = sync.OnceValue(func() bool {
	return exec.Command(harness.Python(), "-c", "import numpy, pandas, matplotlib, scipy").Run() == nil
})

// minor returns the x of Python 3.x.
var minor = sync.OnceValue(func() int {
	out, err := exec.Command(harness.Python(), "-c", "import sys; print(sys.version_info.minor)").Output()
	if err != nil {
		panic(err)
	}
	x, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		panic(err)
	}
	return x
})

// here returns the absolute path of a file of this folder.
func here(t testing.TB, elements ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// load returns all programs.
func load(t *testing.T) []program {
	t.Helper()
	// Those that Python cannot parse end in .txt, so that tools which read Python pass them over.
	paths, err := filepath.Glob("programs/*/*.py*")
	if err != nil || len(paths) == 0 {
		t.Fatalf("found no programs: %v", err)
	}
	inputs, err := os.ReadDir("inputs")
	if err != nil {
		t.Fatal(err)
	}
	ways := exec.CommandContext(t.Context(), harness.Python(), here(t, "plain", "run.py"))
	ways.Stdin = strings.NewReader(strings.Join(paths, "\n") + "\n")
	var problems bytes.Buffer
	ways.Stderr = &problems
	out, err := ways.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(lines) != len(paths) {
		t.Fatalf("ways of %d programs: %v, got %d\n%s", len(paths), err, len(lines), &problems)
	}
	all := make([]program, len(paths))
	for i, path := range paths {
		code, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(filepath.ToSlash(path), "programs/")
		name, _, _ = strings.Cut(name, ".py")
		all[i] = program{name: name, code: string(code), way: lines[i]}
		for _, input := range inputs {
			if strings.Contains(all[i].code, input.Name()) {
				all[i].inputs = append(all[i].inputs, input.Name())
			}
		}
	}
	return all
}

// TestPrograms runs each program on both sides and compares what it does.
func TestPrograms(t *testing.T) { //nolint:tparallel // the group waits for its members, and the tools end after them
	t.Parallel()
	programs := load(t)
	setup := harness.ProcessSetup()
	client := harness.Serve(t, setup, harness.With(setup.Libraries(), harness.Settings{"POOL_SIZE": "4"})).Alice()
	server := &server{client: client, tools: startTools(t), inputs: upload(t, client)}
	t.Run("all", func(t *testing.T) {
		for _, p := range programs {
			if libraries.MatchString(p.code) && !hasLibraries() {
				t.Logf("%s is left out: %s has no numpy, pandas, matplotlib or scipy", p.name, harness.Python())
				continue
			}
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				plain, served := runPlain(t, p), server.run(t, p)
				judge(t, p.name, plain, served)
			})
		}
	})
	judgeTable(t, programs)
}

// judge fails the test if the two outcomes differ in more or less than the table allows.
func judge(t *testing.T, name string, plain, served outcome) {
	t.Helper()
	may := differences[name]
	if minor() < may.since || may.until != 0 && minor() > may.until {
		may = difference{}
	}
	found := compare(plain, served)
	for _, part := range parts {
		difference, differs := found[part]
		switch allowed := strings.Contains(" "+may.parts+" ", " "+part+" "); {
		case differs && !allowed:
			t.Errorf("%s differs: %s", part, difference)
		case allowed && !differs:
			t.Errorf("%s is the same as in plain Python, but the table of differences has it", part)
		}
	}
	if t.Failed() {
		t.Logf("plain Python: %v\nthe server: %v", plain, served)
	}
}
