package survival

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"syscall"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestKilledWhilePaused kills the server while programs are paused: the next server continues
// them.
func TestKilledWhilePaused(t *testing.T) {
	harness.OverSetups(t, harness.EachStore|harness.GVisor|harness.OrdinaryUser|harness.OrdinaryUserWithRange, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, nil)
		c := server.Alice()
		p := harness.Program{Code: harness.Py(`
			import io
			values, buffer = {"list": [1, 2]}, io.StringIO("text")
			print("before", buffer.read(2))
			open("/mnt/data/file", "w").write("on disk")
			first = await ask(n=1)
			values["list"].append(first["n"])
			print("between")
			second = await asyncio.gather(ask(n=2), ask(n=3))
			print(values, buffer.read(), second, open("/mnt/data/file").read())
		`), Tools: harness.Tools("ask")}
		const stdout = "before te\nbetween\n{'list': [1, 2, 1]} xt [{'n': 2}, {'n': 3}] on disk\n"
		restart := func() {
			t.Helper()
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			c = server.Alice()
		}

		first, answered, ended := c.Pause(t, p), c.Pause(t, p), c.Pause(t, harness.AskOnce)
		second := c.Pause(t, answered.Continue(harness.Echo))
		end := c.Post(t, ended.Continue(harness.Echo))
		end.Completes(t, "{'n': 1}\n")
		seen := map[string]*harness.Journal{}
		for _, a := range []harness.Answer{first, second, end} {
			seen[a.Execution()] = tells(t, c, nil, a)
		}
		restart()

		for _, a := range []harness.Answer{first, second, end} {
			tells(t, c, seen[a.Execution()], a)
		}
		// A request that was answered before the crash gets the same bytes again.
		if again := c.Post(t, answered.Continue(harness.Echo)); again.Raw != second.Raw {
			t.Errorf("retry of an answered round: got %v, want %v", again, second)
		}
		if again := c.Post(t, ended.Continue(harness.Echo)); again.Raw != end.Raw {
			t.Errorf("retry of the last round: got %v, want %v", again, end)
		}
		c.Post(t, answered.Continue(harness.Value("0"))).Fails(t, 400, "Invalid continuation token")
		c.Post(t, ended.Continue(harness.Value("0"))).Fails(t, 400, "Execution expired")
		server.Bob().Post(t, first.Continue(harness.Echo)).Fails(t, 403, "Forbidden")

		next := c.Pause(t, first.Continue(harness.Echo))
		restart()
		for _, pause := range []harness.Answer{next, second} {
			end := c.Post(t, pause.Continue(harness.Echo))
			end.Completes(t, stdout)
			tells(t, c, seen[end.Execution()], end)
		}
		c.Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
	})
}

// TestKilledWhileRunning kills the server while a program runs. The program must not run twice, and
// its client must not wait for ever.
func TestKilledWhileRunning(t *testing.T) {
	harness.OverSetups(t, harness.EachStore|harness.GVisor|harness.OrdinaryUser, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, nil)
		c := server.Alice()

		p := harness.Program{Code: harness.Py(`
			import time
			count = 0
			await ask(n=0)
			count += 1
			time.sleep(1.5)
			print("ran", count, "times", await ask(n=count))
		`), Tools: harness.Tools("ask")}
		pause, start := c.Pause(t, p), make(chan error, 2)
		seen := tells(t, c, nil, pause)
		go func() {
			_, err := c.Send(t.Context(), harness.Program{Code: "import time\nprint('begun')\ntime.sleep(60)", Labels: harness.Labels{"lost": "yes"}})
			start <- err
		}()
		var lost []string
		err := harness.Within(harness.StartTimeout, func() (err error) {
			if lost, err = c.Labelled(t.Context(), "lost", "yes"); err == nil && len(lost) != 1 {
				err = fmt.Errorf("the program that is to be lost is %q, want one", lost)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := c.Send(t.Context(), pause.Continue(harness.Echo))
			start <- err
		}()
		// Another continuation gets 409 as soon as the first one is in flight. Before that it
		// changes nothing, since no call has this id.
		other := harness.Continuation{Token: pause.Token, Results: []harness.Result{{CallID: "call_999"}}}
		err = harness.Within(harness.StartTimeout, func() error {
			a, err := c.Send(t.Context(), other)
			if err == nil && a.HTTPStatus != http.StatusConflict {
				err = fmt.Errorf("got %v, want 409", a)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := <-start; err == nil {
				t.Error("a request to a server that was killed had an answer")
			}
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		c = server.Alice()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		again, err := c.Send(ctx, pause.Continue(harness.Echo))
		if err != nil {
			t.Fatalf("retry after the crash: %v", err)
		}
		if again.Status != "tool_call_required" {
			again.Fails(t, 400, "Execution expired") // It may be lost, but the error must say so.
			ends(t, c, seen, "error")
			return
		}
		if got, want := again.Calls[0].CompactInput(), `{"n":1}`; got != want {
			t.Errorf("input = %s, want %s", got, want)
		}
		end := c.Post(t, again.Continue(harness.Value("7")))
		end.Completes(t, "ran 1 times 7\n")
		tells(t, c, seen, end)
		ends(t, c, &harness.Journal{ID: lost[0]}, "error")
	})
}

// TestSandboxesKilled kills all processes below the server: paused programs end with a clear error,
// and the next ones run.
func TestSandboxesKilled(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox|harness.OrdinaryUser|harness.OrdinaryUserWithRange, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, nil)
		c := server.Alice()
		pause := c.Pause(t, harness.AskOnce)
		seen := tells(t, c, nil, pause)
		for _, p := range server.Family()[1:] {
			// The process may already have ended together with another one.
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
		a := c.Post(t, pause.Continue(harness.Echo))
		if a.Status != "error" || a.HTTPStatus >= 500 {
			t.Errorf("got %v, want an error that is not the server's", a)
		}
		if a.HTTPStatus == http.StatusOK {
			ends(t, c, seen, "error") // The claim came before the loss was noticed.
		} else {
			ends(t, c, seen, "expired")
		}
		err := harness.Within(20*time.Second, func() error {
			a, err := c.Send(t.Context(), harness.Program{Code: "print(1)"})
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

// TestKilledAtAnyInstant kills the server again and again: while programs start, run, pause and
// end, while the pool refills, and while the next server takes over.
func TestKilledAtAnyInstant(t *testing.T) {
	kills := harness.Count(10, 200)
	harness.OverSetups(t, harness.EachStore|harness.OrdinaryUser|harness.OrdinaryUserWithRange, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.Quick(t))
		stop := walkers(t, server.Alice())
		for n := range kills {
			if n%3 == 0 {
				// Kill the server before it serves, or not long after.
				time.Sleep(rand.N(400 * time.Millisecond))
			} else {
				if err := server.Await(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(rand.N(600 * time.Millisecond))
			}
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := server.Launch(); err != nil {
				t.Fatal(err)
			}
		}
		if err := server.Await(); err != nil {
			t.Fatal(err)
		}
		stop()
	})
}
