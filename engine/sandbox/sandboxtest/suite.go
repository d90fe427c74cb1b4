package sandboxtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"fermata/engine/sandbox"
)

// Server is the instance that the provider of a test must mark sandboxes with.
const Server = "server-under-test"

// patience is how long anything may take on a busy machine.
const patience = 2 * time.Minute

// Run tries everything that a provider promises. The one that open returns must mark its
// sandboxes with Server; Run closes it, after further tests.
func Run(t *testing.T, open func(t *testing.T) sandbox.Provider, further func(t *testing.T, p sandbox.Provider)) {
	// The runtime keeps a descriptor for the network from its first use on.
	if l, err := net.Listen("unix", ""); err == nil {
		_ = l.Close()
	}
	goroutines, descriptors := goleak.IgnoreCurrent(), countDescriptors(t)
	p := open(t)

	for _, kind := range sandbox.Kinds {
		t.Run("create, list, destroy, "+string(kind), func(t *testing.T) { testLife(t, p, kind) })
	}
	t.Run("attach to nothing", func(t *testing.T) { testGone(t, p) })
	t.Run("destroy ends the stream", func(t *testing.T) { testDestroyEndsStream(t, p) })
	t.Run("cancelled create", func(t *testing.T) { testCancelledCreate(t, p) })
	t.Run("many at once", func(t *testing.T) { testMany(t, p) })
	t.Run("output of a running program", func(t *testing.T) { testOutput(t, p) })
	further(t, p)

	if refs := List(t, p); len(refs) > 0 {
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

func testLife(t *testing.T, p sandbox.Provider, kind sandbox.Kind) {
	ref := Create(t, p, kind)
	if refs := List(t, p); refs[ref] != Server {
		t.Errorf("List = %v, want %s of %s in it", refs, ref, Server)
	}
	for _, which := range []string{"first", "second"} {
		if err := p.Destroy(t.Context(), ref); err != nil {
			t.Errorf("%s Destroy = %v", which, err)
		}
		if _, there := List(t, p)[ref]; there {
			t.Errorf("after the %s Destroy, %s is still listed", which, ref)
		}
	}
}

func testGone(t *testing.T, p sandbox.Provider) {
	ref := Create(t, p, sandbox.Scientific)
	if err := p.Destroy(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if s, err := p.Attach(t.Context(), ref); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("Attach = %v, %v, want ErrGone", s, err)
	}
}

func testDestroyEndsStream(t *testing.T, p sandbox.Provider) {
	ref := Create(t, p, sandbox.Scientific)
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

func testCancelledCreate(t *testing.T, p sandbox.Provider) {
	ctx, cancel := context.WithCancel(t.Context())
	created := make(chan struct{})
	go func() {
		defer close(created)
		if ref, err := p.Create(ctx, sandbox.Scientific); err == nil {
			if err := p.Destroy(t.Context(), ref); err != nil {
				t.Errorf("Destroy = %v", err)
			}
		}
	}()
	cancel()
	<-created
	if refs := List(t, p); len(refs) > 0 {
		t.Errorf("List = %v after a Create was cancelled, want none", refs)
	}
}

func testMany(t *testing.T, p sandbox.Provider) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			ref, err := p.Create(t.Context(), sandbox.Scientific)
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

// What a program prints is told while it runs, and before the calls that it makes afterwards.
// A server that attaches later is told all of it.
func testOutput(t *testing.T, p sandbox.Provider) {
	const code = `
import subprocess, sys
for n in range(10):
    print("out", n, end="")
    print("err", n, file=sys.stderr)
    subprocess.run(["echo", "!"])
    await ask(n=n)
print("waits", end="")
while True: pass
`
	var out, err string
	ref := Create(t, p, sandbox.Scientific)
	first := listen(t, p, ref)
	quoted, e := json.Marshal(code)
	if e != nil {
		t.Fatal(e)
	}
	stub := "@tool('ask', 'ask', False)\nasync def _(**extra: Any) -> Any: ''\n"
	if e := first.Run(sandbox.Program{Code: quoted, Stubs: stub, Tools: []string{"ask"}}); e != nil {
		t.Fatal(e)
	}
	for n := range 10 {
		out, err = fmt.Sprintf("%sout %d!\n", out, n), fmt.Sprintf("%serr %d\n", err, n)
		first.paused(out, err, 7)
		if n == 5 {
			first.Detach()
			first = listen(t, p, ref)
			first.paused(out, err, 7)
		}
		if e := first.Resume([]sandbox.Result{{Number: n + 1}}); e != nil {
			t.Fatal(e)
		}
	}
	out += "waits"
	for first.out != out {
		if event, ok := first.next().(sandbox.Output); ok {
			first.note(event)
		}
	}
	if e := first.Kill(); e != nil {
		t.Fatal(e)
	}
	for {
		if exit, ok := first.next().(sandbox.Exit); ok {
			if string(exit.Stdout) != out || string(exit.Stderr) != err {
				t.Errorf("the exit has %q and %q, want %q and %q", exit.Stdout, exit.Stderr, out, err)
			}
			break
		}
	}
	first.Detach()
}

// A listener is a connection, and what has come of the program's output.
type listener struct {
	*sandbox.Conn
	t        *testing.T
	out, err string
}

func listen(t *testing.T, p sandbox.Provider, ref string) *listener {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := sandbox.Attach(ctx, p, ref, []byte("0123456789abcdef"), sandbox.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return &listener{Conn: c, t: t}
}

// next returns the next event.
func (l *listener) next() sandbox.Event {
	l.t.Helper()
	select {
	case event, ok := <-l.Events():
		if b, broken := event.(sandbox.Broken); !ok || broken {
			l.t.Fatalf("the stream has ended: %v, %v", l.Err(), b.Err)
		}
		return event
	case <-time.After(patience):
		l.t.Fatal("nothing happens in the sandbox")
		return nil
	}
}

// note checks and keeps a piece of output.
func (l *listener) note(o sandbox.Output) {
	l.t.Helper()
	stream := &l.out
	if o.Stderr {
		stream = &l.err
	}
	if o.Offset != int64(len(*stream)) {
		l.t.Errorf("a piece at %d follows %d bytes", o.Offset, len(*stream))
	}
	*stream += string(o.Data)
}

// paused waits for the program's call from a line, before which all of its output must have come.
func (l *listener) paused(out, err string, line int) {
	l.t.Helper()
	for {
		switch event := l.next().(type) {
		case sandbox.Output:
			l.note(event)
		case *sandbox.Calls:
			if l.out != out || l.err != err {
				l.t.Errorf("%q and %q came before the calls, want %q and %q", l.out, l.err, out, err)
			}
			for call, e := range event.All() {
				if e != nil || call.Line != line {
					l.t.Errorf("a call of line %d, %v, want %d", call.Line, e, line)
				}
			}
			return
		}
	}
}

// Create makes a sandbox of a kind, which ends with the test.
func Create(t *testing.T, p sandbox.Provider, kind sandbox.Kind) string {
	t.Helper()
	ref, err := p.Create(t.Context(), kind)
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

// List returns the servers of all sandboxes by their references.
func List(t *testing.T, p sandbox.Provider) map[string]string {
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
