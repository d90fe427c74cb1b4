package enginetest

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/sandbox"
	"fermata/engine/sandbox/sandboxtest"
)

// Run tries everything that a provider promises, and programs in its sandboxes. The one that
// open returns must mark its sandboxes with Server and bound memory to less than 1 GiB; Run
// closes it.
func Run(t *testing.T, open func(t *testing.T) sandbox.Provider) {
	sandboxtest.Run(t, open, func(t *testing.T, p sandbox.Provider) {
		t.Run("programs", func(t *testing.T) { testPrograms(t, p) })
		t.Run("another server takes over a pause", func(t *testing.T) { testTakeOverPaused(t, p) })
		t.Run("another server takes over a run", func(t *testing.T) { testTakeOverRunning(t, p) })
		t.Run("another server destroys what is left over", func(t *testing.T) { testLeftOver(t, p) })
	})
}

func testPrograms(t *testing.T, p sandbox.Provider) {
	e := New(t, p)
	for _, tt := range []struct {
		name    string
		code    string
		timeout time.Duration
		want    core.Outcome
	}{
		{
			"prints", "import sys\nprint('out')\nprint('err', file=sys.stderr)", time.Minute,
			core.Outcome{State: core.Completed, Stdout: "out\n", Stderr: "err\n"},
		},
		{
			"exits", "import sys; sys.exit(3)", time.Minute,
			core.Outcome{State: core.Failed, Reason: core.ExitedCode, Code: 3},
		},
		{
			"kills itself", "import os; print('x'); os.kill(os.getpid(), 9)", time.Minute,
			core.Outcome{State: core.Failed, Stdout: "x\n", Reason: core.ExitedCode, Code: -9},
		},
		{
			"spins", "print('x')\nwhile True: pass", time.Second,
			core.Outcome{State: core.TimedOut, Stdout: "x\n", Detail: "The program ran for its whole timeout of 1000 ms"},
		},
		{
			"takes too much memory", "print('x')\nx = b'x' * (1 << 30)", time.Minute,
			core.Outcome{State: core.Failed, Stdout: "x\n", Reason: core.OutOfMemory},
		},
		{
			"leaves children", "import os, time\nif os.fork() == 0:\n    if os.fork() == 0: time.sleep(1000)\n    time.sleep(1000)\nprint('x')",
			time.Minute,
			core.Outcome{State: core.Completed, Stdout: "x\n"},
		},
		{
			"kills all it can", "import os, time\nprint('x')\nif os.fork() == 0:\n    os.kill(-1, 9)\ntime.sleep(1000)",
			time.Minute,
			core.Outcome{State: core.Failed, Stdout: "x\n", Reason: core.ExitedCode, Code: -9},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := e.Start(tt.code, tt.timeout)
			tt.want.Session = got.Session
			if tt.want.Reason == core.OutOfMemory {
				// The interpreter may notice first, and say so. Where the sandbox as a whole
				// is killed, what was printed is lost.
				got.Stdout, got.Stderr = tt.want.Stdout, tt.want.Stderr
			}
			if tt.want.State == core.TimedOut {
				// On a machine that is short of time, the program may not tell in time where it stands.
				got.Detail, _, _ = strings.Cut(got.Detail, " and was stopped at")
			}
			if got.State != tt.want.State || got.Stdout != tt.want.Stdout || got.Stderr != tt.want.Stderr ||
				got.Reason != tt.want.Reason || got.Detail != tt.want.Detail || got.Code != tt.want.Code {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
	t.Run("calls tools", func(t *testing.T) {
		got := e.Start("print(len(await ask(x=1)))\nprint(len(await ask(x='y' * (1 << 20))))", time.Minute, "ask")
		var err error
		for range 2 {
			if got.State != core.Paused || len(got.Calls) != 1 {
				t.Fatalf("got %+v, want a pause with one call", got)
			}
			if got, err = e.Resume(got, `"`+strings.Repeat("z", 1<<20)+`"`); err != nil {
				t.Fatal(err)
			}
		}
		if want := "1048576\n1048576\n"; got.State != core.Completed || got.Stdout != want {
			t.Errorf("got %+v, want it completed with stdout %q", got, want)
		}
	})
}

const twoCalls = `
import time
print(await ask(n=1), flush=True)
time.sleep(1)
print(await ask(n=2))
`

func testTakeOverPaused(t *testing.T, p sandbox.Provider) {
	first := New(t, p)
	paused := first.Start(twoCalls, time.Minute, "ask")
	first.Die()
	second := newEngine(t, p, first.Store, "second")
	finish(t, second, paused, bothResults...)
}

func testTakeOverRunning(t *testing.T, p sandbox.Provider) {
	first := New(t, p)
	paused := first.Start(twoCalls, time.Minute, "ask")
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		// It is lost with its server; what is tried is the second.
		_, _ = first.Resume(paused, `"one"`)
	}()
	for onlyRecord(t, first).State != string(core.Running) {
		runtime.Gosched()
	}
	first.Die()
	<-lost
	second := newEngine(t, p, first.Store, "second")
	finish(t, second, paused, bothResults...)
}

// bothResults are those of twoCalls.
var bothResults = []string{`"one"`, `"two"`}

// finish goes on with a pause to the end.
func finish(t *testing.T, e *Engine, paused core.Outcome, values ...string) {
	t.Helper()
	for _, value := range values {
		if paused.State != core.Paused || len(paused.Calls) != 1 {
			t.Fatalf("got %+v, want a pause with one call", paused)
		}
		next, err := e.Resume(paused, value)
		if err != nil {
			t.Fatalf("Resume = %v", err)
		}
		paused = next
	}
	if want := "one\ntwo\n"; paused.State != core.Completed || paused.Stdout != want {
		t.Errorf("got %+v, want it completed with stdout %q", paused, want)
	}
}

func testLeftOver(t *testing.T, p sandbox.Provider) {
	ref := sandboxtest.Create(t, p, sandbox.Scientific)
	newEngine(t, p, openStore(t), "another")
	if _, there := sandboxtest.List(t, p)[ref]; there {
		t.Errorf("%s is still there after another server has started", ref)
	}
}

func onlyRecord(t *testing.T, e *Engine) continuation.Record {
	t.Helper()
	records, err := e.Store.List(t.Context())
	if err != nil || len(records) != 1 {
		t.Fatalf("List = %v, %v, want one record", records, err)
	}
	return records[0]
}
