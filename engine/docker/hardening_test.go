package docker

import (
	_ "embed"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fermata/engine/core"
	"fermata/engine/enginetest"
)

// lookAround is a program that reports what it finds and what it is refused.
//
//go:embed testdata/look_around.py
var lookAround string

type facts struct {
	UID           []int             `json:"uid"`
	Groups        []int             `json:"groups"`
	Capabilities  []string          `json:"capabilities"`
	NoNewPrivs    string            `json:"no_new_privs"`
	Seccomp       string            `json:"seccomp"`
	Environment   []string          `json:"environment"`
	Descriptors   []int             `json:"descriptors"`
	Directory     string            `json:"directory"`
	Host          string            `json:"host"`
	Routes        int               `json:"routes"`
	Interfaces    []string          `json:"interfaces"`
	Resolvers     []string          `json:"resolvers"`
	Core          int64             `json:"core"`
	FileSize      int64             `json:"file_size"`
	DockerSockets []string          `json:"docker_sockets"`
	ForkMany      []any             `json:"fork_many"`
	Attempts      map[string]string `json:"attempts"`
}

func TestHardening(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		// With gVisor each process takes some 30 MiB of the sandbox's memory.
		p := open(t, withRuntime(runtime), func(o *Options) { o.PIDs = 8 })
		e := enginetest.New(t, p)
		var got facts
		e.Facts(lookAround, &got)
		attempts := got.Attempts
		got.Attempts = nil
		none := strings.Repeat("0", 16)
		want := facts{
			UID: []int{1000, 1000, 1000, 1000}, Groups: []int{1000},
			Capabilities: []string{none, none, none, none, none},
			NoNewPrivs:   "1", Seccomp: "2",
			Environment: []string{
				"HOME", "LANG", "LC_ALL", "MPLBACKEND", "MPLCONFIGDIR", "OMP_NUM_THREADS",
				"OPENBLAS_NUM_THREADS", "PATH", "TMPDIR", "XDG_CACHE_HOME",
			},
			Descriptors: []int{0, 1, 2, 3}, Directory: "/mnt/data", Host: "sandbox",
			Interfaces: []string{"lo"}, Resolvers: []string{"127.0.0.1"},
			Core: 1, FileSize: p.o.Disk, DockerSockets: []string{},
			ForkMany: []any{"EAGAIN", float64(p.o.PIDs - 1)},
		}
		// scikit-learn sets these variables when it is imported.
		got.Environment = slices.DeleteFunc(got.Environment, func(name string) bool { return strings.HasPrefix(name, "KMP_") })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("want (-), got (+):\n%s", diff)
		}
		refusals := map[string][]string{
			"fill /mnt/data":  {"EFBIG", "ENOSPC"},
			"fill /tmp":       {"EFBIG", "ENOSPC"},
			"fill /dev/shm":   {"EFBIG", "ENOSPC"},
			"open many files": {"EMFILE"},
			"connect":         {"ENETUNREACH"},
			"connect by IPv6": {"ENETUNREACH", "EADDRNOTAVAIL"},
		}
		if len(attempts) != wantAttempts {
			t.Errorf("the program made %d attempts, want %d", len(attempts), wantAttempts)
		}
		for what, got := range attempts {
			allowed := refusals[what]
			if allowed == nil {
				allowed = []string{"EACCES", "EPERM", "EROFS"}
			}
			if !slices.Contains(allowed, got) {
				t.Errorf("attempt to %s: %s, want one of %v", what, got, allowed)
			}
		}
	})
}

// manyFiles is a program that makes files until it may make no more.
//
//go:embed testdata/many_files.py
var manyFiles string

// TestFilesAreCounted runs with runc only: gVisor does not count files, but counts them as
// memory.
func TestFilesAreCounted(t *testing.T) {
	daemon(t)
	e := enginetest.New(t, open(t, withRuntime("runc")))
	var got []any
	e.Facts(manyFiles, &got)
	if want := []any{"ENOSPC", float64(maxInodes - 1)}; !cmp.Equal(got, want) {
		t.Errorf("making files ended with %v, want %v", got, want)
	}
}

// TestOutOfMemoryKeepsOutput checks that the kernel kills the worker and not its supervisor,
// which still has the output.
func TestOutOfMemoryKeepsOutput(t *testing.T) {
	daemon(t)
	e := enginetest.New(t, open(t, withRuntime("runc")))
	got := e.Start("print('x')\nx = b'x' * (1 << 30)", time.Minute)
	if got.Reason != core.OutOfMemory || got.Stdout != "x\n" {
		t.Errorf("got %+v, want it out of memory, with stdout", got)
	}
}

// wantAttempts is how many attempts the program makes.
const wantAttempts = 29
