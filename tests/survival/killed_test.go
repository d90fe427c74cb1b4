package tests

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestKilledWhilePaused kills the server while programs are paused: its successor
// goes on with them.
func TestKilledWhilePaused(t *testing.T) {
	overSetups(t, eachStore|onGVisor|ordinaryUser|ordinaryUserWithRange, func(t *testing.T, s setup) {
		server := serveAlone(t, s, nil)
		c := server.alice()
		p := program{Code: py(`
			import io
			values, buffer = {"list": [1, 2]}, io.StringIO("text")
			print("before", buffer.read(2))
			open("/mnt/data/file", "w").write("on disk")
			first = await ask(n=1)
			values["list"].append(first["n"])
			print("between")
			second = await asyncio.gather(ask(n=2), ask(n=3))
			print(values, buffer.read(), second, open("/mnt/data/file").read())
		`), Tools: tools("ask")}
		const stdout = "before te\nbetween\n{'list': [1, 2, 1]} xt [{'n': 2}, {'n': 3}] on disk\n"
		restart := func() {
			t.Helper()
			if err := server.kill(); err != nil {
				t.Fatal(err)
			}
			if err := server.start(); err != nil {
				t.Fatal(err)
			}
			c = server.alice()
		}

		first, answered, ended := c.pause(t, p), c.pause(t, p), c.pause(t, paused)
		second := c.pause(t, answered.answers(echo))
		end := c.post(t, ended.answers(echo))
		end.completes(t, "{'n': 1}\n")
		restart()

		// An identical retry of what was answered before gets the same bytes.
		if again := c.post(t, answered.answers(echo)); again.raw != second.raw {
			t.Errorf("retry of an answered round: got %v, want %v", again, second)
		}
		if again := c.post(t, ended.answers(echo)); again.raw != end.raw {
			t.Errorf("retry of the last round: got %v, want %v", again, end)
		}
		c.post(t, answered.answers(value("0"))).fails(t, 400, "Invalid continuation token")
		c.post(t, ended.answers(value("0"))).fails(t, 400, "Execution expired")
		server.bob().post(t, first.answers(echo)).fails(t, 403, "Forbidden")

		next := c.pause(t, first.answers(echo))
		restart()
		c.post(t, next.answers(echo)).completes(t, stdout)
		c.post(t, second.answers(echo)).completes(t, stdout)
		c.post(t, program{Code: "print(1)"}).completes(t, "1\n")
	})
}

// TestKilledWhileRunning kills the server while a program runs. The program must
// not run twice, and its client must not wait for ever.
func TestKilledWhileRunning(t *testing.T) {
	overSetups(t, eachStore|onGVisor|ordinaryUser, func(t *testing.T, s setup) {
		server := serveAlone(t, s, nil)
		c := server.alice()

		p := program{Code: py(`
			import time
			count = 0
			await ask(n=0)
			count += 1
			time.sleep(1.5)
			print("ran", count, "times", await ask(n=count))
		`), Tools: tools("ask")}
		pause, start := c.pause(t, p), make(chan error, 2)
		go func() {
			_, err := c.send(t.Context(), pause.answers(echo))
			start <- err
		}()
		go func() {
			_, err := c.send(t.Context(), program{Code: "import time\ntime.sleep(60)"})
			start <- err
		}()
		// Another continuation gets 409 as soon as this one is there, and can do nothing
		// before: no call has this id.
		other := continuation{pause.Token, []result{{CallID: "call_999"}}}
		err := within(10*time.Second, func() error {
			a, err := c.send(t.Context(), other)
			if err == nil && a.code != http.StatusConflict {
				err = fmt.Errorf("got %v, want 409", a)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := server.kill(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := <-start; err == nil {
				t.Error("a request to a server that was killed had an answer")
			}
		}
		if err := server.start(); err != nil {
			t.Fatal(err)
		}
		c = server.alice()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		again, err := c.send(ctx, pause.answers(echo))
		if err != nil {
			t.Fatalf("retry after the crash: %v", err)
		}
		if again.Status != "tool_call_required" {
			again.fails(t, 400, "Execution expired") // It may be lost, but then clearly.
			return
		}
		if got, want := again.Calls[0].input(), `{"n":1}`; got != want {
			t.Errorf("input = %s, want %s", got, want)
		}
		c.post(t, again.answers(value("7"))).completes(t, "ran 1 times 7\n")
	})
}

// TestStop checks that a server that is asked to stop answers what is under way.
func TestStop(t *testing.T) {
	overSetups(t, eachEngine|ordinaryUser, func(t *testing.T, s setup) {
		server := serveAlone(t, s, nil)
		c := server.alice()
		c.pause(t, paused)
		answers := make(chan answer, 1)
		go func() {
			a, err := c.send(t.Context(), program{Code: "import time\nprint('begun', flush=True)\ntime.sleep(1)\nprint('ended')"})
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
		time.Sleep(300 * time.Millisecond) // No answer tells that a program has begun.
		family := server.family()
		if err := server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		a := <-answers
		a.completes(t, "begun\nended\n")
		select {
		case <-server.exited:
		case <-time.After(stopTimeout):
			t.Fatalf("the server runs %v after SIGTERM", stopTimeout)
		}
		if code := server.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("the server ended with code %d, want 0", code)
		}
		if err := server.cleared(family); err != nil {
			t.Error(err)
		}
		if err := server.start(); err != nil {
			t.Fatal(err)
		}
		server.alice().post(t, program{Code: "print(1)"}).completes(t, "1\n")
	})
}

// TestSandboxesKilled kills everything below the server: the paused programs are lost,
// clearly, and the next ones run.
func TestSandboxesKilled(t *testing.T) {
	overSetups(t, eachEngine|ordinaryUser|ordinaryUserWithRange, func(t *testing.T, s setup) {
		server := serveAlone(t, s, nil)
		c := server.alice()
		pause := c.pause(t, paused)
		for _, p := range server.family()[1:] {
			// It may have ended with another one before.
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		a := c.post(t, pause.answers(echo))
		if a.Status != "error" || a.code >= 500 {
			t.Errorf("got %v, want an error that is not the server's", a)
		}
		err := within(20*time.Second, func() error {
			a, err := c.send(t.Context(), program{Code: "print(1)"})
			if err == nil && a.Stdout != "1\n" {
				err = fmt.Errorf("got %v, want it completed", a)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestClientLeaves checks what becomes of a program whose client has gone.
func TestClientLeaves(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		server := serveAlone(t, s, settings{"POOL_SIZE": "1"})
		c := server.alice()
		t.Run("in the first request", func(t *testing.T) {
			before := resting(server.processes)
			ctx, leave := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer leave()
			if a, err := c.send(ctx, program{Code: "import os\nfor _ in range(5): os.fork()\nwhile True: pass"}); err == nil {
				t.Fatalf("got %v, want the client to have left", a)
			}
			err := within(3*time.Second, func() error { return atMost("processes", server.processes(), before) })
			if err != nil {
				t.Error(err)
			}
		})
		t.Run("in a continuation", func(t *testing.T) {
			pause := c.pause(t, program{Code: "import time\nx = await ask(n=1)\ntime.sleep(1)\nprint(x)", Tools: tools("ask")})
			ctx, leave := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer leave()
			if a, err := c.send(ctx, pause.answers(echo)); err == nil {
				t.Fatalf("got %v, want the client to have left", a)
			}
			var wg sync.WaitGroup
			answers := make([]answer, 4)
			for i := range answers {
				wg.Go(func() {
					var err error
					if answers[i], err = c.send(t.Context(), pause.answers(echo)); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			for _, a := range append(answers, c.post(t, pause.answers(echo))) {
				a.completes(t, "{'n': 1}\n")
				if a.raw != answers[0].raw {
					t.Errorf("got %v and %v for one request, want one answer", a, answers[0])
				}
			}
		})
		t.Run("in the middle of a body", func(t *testing.T) {
			ctx, leave := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer leave()
			body := &stuck{text: strings.NewReader(`{"code":"print(`), until: ctx.Done()}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.url+programmatic, body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-API-Key", "key-a")
			r.Header.Set("Content-Type", "application/json")
			if a, err := http.DefaultClient.Do(r); err == nil {
				defer a.Body.Close()
				t.Errorf("got %v, want no answer to half a request", a.Status)
			}
			c.post(t, program{Code: "print(1)"}).completes(t, "1\n")
		})
	})
}

// A stuck body has no end.
type stuck struct {
	text  *strings.Reader
	until <-chan struct{}
}

func (s *stuck) Read(p []byte) (int, error) {
	if n, err := s.text.Read(p); err == nil {
		return n, nil
	}
	<-s.until
	return 0, context.Canceled
}
