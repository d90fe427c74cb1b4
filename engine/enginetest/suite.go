package enginetest

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"fermata/continuation"
	"fermata/engine"
)

// Run tries everything that a provider promises. The one that open returns must mark
// its sandboxes with Server and bound memory to less than 1 GiB; Run closes it.
func Run(t *testing.T, open func(t *testing.T) engine.Provider) {
	// The runtime keeps a descriptor for the network from its first use on.
	if l, err := net.Listen("unix", ""); err == nil {
		_ = l.Close()
	}
	goroutines, descriptors := goleak.IgnoreCurrent(), countDescriptors(t)
	p := open(t)

	t.Run("create, list, destroy", func(t *testing.T) { testLife(t, p) })
	t.Run("attach to nothing", func(t *testing.T) { testGone(t, p) })
	t.Run("destroy ends the stream", func(t *testing.T) { testDestroyEndsStream(t, p) })
	t.Run("cancelled create", func(t *testing.T) { testCancelledCreate(t, p) })
	t.Run("many at once", func(t *testing.T) { testMany(t, p) })
	t.Run("programs", func(t *testing.T) { testPrograms(t, p) })
	t.Run("another server takes over a pause", func(t *testing.T) { testTakeOverPaused(t, p) })
	t.Run("another server takes over a run", func(t *testing.T) { testTakeOverRunning(t, p) })
	t.Run("another server destroys what is left over", func(t *testing.T) { testLeftOver(t, p) })

	if refs := list(t, p); len(refs) > 0 {
		t.Errorf("after all tests there are sandboxes %v, want none", refs)
	}
	if err := p.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	goleak.VerifyNone(t, goroutines)
	if got := countDescriptors(t); got > descriptors {
		t.Errorf("%d descriptors are open after Close, want %d as before", got, descriptors)
	}
}

func testLife(t *testing.T, p engine.Provider) {
	ref := create(t, p)
	if refs := list(t, p); refs[ref] != Server {
		t.Errorf("List = %v, want %s of %s in it", refs, ref, Server)
	}
	for _, which := range []string{"first", "second"} {
		if err := p.Destroy(t.Context(), ref); err != nil {
			t.Errorf("%s Destroy = %v", which, err)
		}
		if _, there := list(t, p)[ref]; there {
			t.Errorf("after the %s Destroy, %s is still listed", which, ref)
		}
	}
}

func testGone(t *testing.T, p engine.Provider) {
	ref := create(t, p)
	if err := p.Destroy(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if s, err := p.Attach(t.Context(), ref); !errors.Is(err, engine.ErrGone) {
		t.Errorf("Attach = %v, %v, want ErrGone", s, err)
	}
}

func testDestroyEndsStream(t *testing.T, p engine.Provider) {
	ref := create(t, p)
	s, err := p.Attach(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// How it ends is the provider's to choose.
		_, _ = io.Copy(io.Discard, s)
	}()
	if err := p.Destroy(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the stream of a destroyed sandbox goes on")
	}
	_ = s.Close()
}

func testCancelledCreate(t *testing.T, p engine.Provider) {
	ctx, cancel := context.WithCancel(t.Context())
	created := make(chan struct{})
	go func() {
		defer close(created)
		if ref, err := p.Create(ctx, engine.Scientific); err == nil {
			if err := p.Destroy(t.Context(), ref); err != nil {
				t.Errorf("Destroy = %v", err)
			}
		}
	}()
	cancel()
	<-created
	if refs := list(t, p); len(refs) > 0 {
		t.Errorf("List = %v after a Create was cancelled, want none", refs)
	}
}

func testMany(t *testing.T, p engine.Provider) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			ref, err := p.Create(t.Context(), engine.Scientific)
			if err != nil {
				t.Errorf("Create = %v", err)
				return
			}
			s, err := p.Attach(t.Context(), ref)
			if err != nil {
				t.Errorf("Attach = %v", err)
			} else {
				_ = s.Close()
			}
			if err := p.Destroy(t.Context(), ref); err != nil {
				t.Errorf("Destroy = %v", err)
			}
		})
	}
	wg.Wait()
}

func testPrograms(t *testing.T, p engine.Provider) {
	e := New(t, p)
	for _, tt := range []struct {
		name    string
		code    string
		timeout time.Duration
		want    engine.Outcome
	}{
		{
			"prints", "import sys\nprint('out')\nprint('err', file=sys.stderr)", time.Minute,
			engine.Outcome{State: engine.Completed, Stdout: "out\n", Stderr: "err\n"},
		},
		{
			"exits", "import sys; sys.exit(3)", time.Minute,
			engine.Outcome{State: engine.Failed, Reason: engine.ExitedCode, Code: 3},
		},
		{
			"kills itself", "import os; print('x'); os.kill(os.getpid(), 9)", time.Minute,
			engine.Outcome{State: engine.Failed, Stdout: "x\n", Reason: engine.ExitedCode, Code: -9},
		},
		{
			"spins", "print('x')\nwhile True: pass", time.Second,
			engine.Outcome{State: engine.TimedOut, Stdout: "x\n"},
		},
		{
			"takes too much memory", "print('x')\nx = b'x' * (1 << 30)", time.Minute,
			engine.Outcome{State: engine.Failed, Stdout: "x\n", Reason: engine.OutOfMemory},
		},
		{
			"leaves children", "import os, time\nif os.fork() == 0:\n    if os.fork() == 0: time.sleep(1000)\n    time.sleep(1000)\nprint('x')",
			time.Minute,
			engine.Outcome{State: engine.Completed, Stdout: "x\n"},
		},
		{
			"kills all it can", "import os, time\nprint('x')\nif os.fork() == 0:\n    os.kill(-1, 9)\ntime.sleep(1000)",
			time.Minute,
			engine.Outcome{State: engine.Failed, Stdout: "x\n", Reason: engine.ExitedCode, Code: -9},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := e.Start(tt.code, tt.timeout)
			tt.want.Session = got.Session
			if tt.want.Reason == engine.OutOfMemory {
				// The interpreter may notice first, and say so. Where the sandbox as a whole
				// is killed, what was printed is lost.
				got.Stdout, got.Stderr = tt.want.Stdout, tt.want.Stderr
			}
			if got.State != tt.want.State || got.Stdout != tt.want.Stdout || got.Stderr != tt.want.Stderr ||
				got.Reason != tt.want.Reason || got.Code != tt.want.Code {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
	t.Run("calls tools", func(t *testing.T) {
		got := e.Start("print(len(await ask(x=1)))\nprint(len(await ask(x='y' * (1 << 20))))", time.Minute, "ask")
		var err error
		for range 2 {
			if got.State != engine.Paused || len(got.Calls) != 1 {
				t.Fatalf("got %+v, want a pause with one call", got)
			}
			if got, err = e.Resume(got, `"`+strings.Repeat("z", 1<<20)+`"`); err != nil {
				t.Fatal(err)
			}
		}
		if want := "1048576\n1048576\n"; got.State != engine.Completed || got.Stdout != want {
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

func testTakeOverPaused(t *testing.T, p engine.Provider) {
	first := New(t, p)
	paused := first.Start(twoCalls, time.Minute, "ask")
	first.Die()
	second := newEngine(t, p, first.Store, "second")
	finish(t, second, paused, bothResults...)
}

func testTakeOverRunning(t *testing.T, p engine.Provider) {
	first := New(t, p)
	paused := first.Start(twoCalls, time.Minute, "ask")
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		// It is lost with its server; what is tried is the second.
		_, _ = first.Resume(paused, `"one"`)
	}()
	for onlyRecord(t, first).State != string(engine.Running) {
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
func finish(t *testing.T, e *Engine, paused engine.Outcome, values ...string) {
	t.Helper()
	for _, value := range values {
		if paused.State != engine.Paused || len(paused.Calls) != 1 {
			t.Fatalf("got %+v, want a pause with one call", paused)
		}
		next, err := e.Resume(paused, value)
		if err != nil {
			t.Fatalf("Resume = %v", err)
		}
		paused = next
	}
	if want := "one\ntwo\n"; paused.State != engine.Completed || paused.Stdout != want {
		t.Errorf("got %+v, want it completed with stdout %q", paused, want)
	}
}

func testLeftOver(t *testing.T, p engine.Provider) {
	ref := create(t, p)
	newEngine(t, p, openStore(t), "another")
	if _, there := list(t, p)[ref]; there {
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

func create(t *testing.T, p engine.Provider) string {
	t.Helper()
	ref, err := p.Create(t.Context(), engine.Scientific)
	if err != nil {
		t.Fatalf("Create = %v", err)
	}
	t.Cleanup(func() {
		if err := p.Destroy(context.Background(), ref); err != nil {
			t.Errorf("Destroy = %v", err)
		}
	})
	return ref
}

// list returns the servers of all sandboxes by their references.
func list(t *testing.T, p engine.Provider) map[string]string {
	t.Helper()
	found, err := p.List(context.Background())
	if err != nil {
		t.Fatalf("List = %v", err)
	}
	refs := map[string]string{}
	for _, s := range found {
		refs[s.Ref] = s.Server
	}
	return refs
}

func countDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
