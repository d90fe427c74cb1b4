package survival

import (
	"net/http"
	"strconv"
	"syscall"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestReadyWhenFull fills a server with paused programs: it is not ready, says why, and tells those
// whom it refuses when a pause ends.
func TestReadyWhenFull(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		const sandboxes, ttl = 2, 60
		server := harness.ServeAlone(t, s, harness.With(harness.Quick(t), harness.Settings{
			"MAX_SANDBOXES": strconv.Itoa(sandboxes), "POOL_SIZE": "1", "QUEUE_TIMEOUT": "2s", "PAUSE_TTL": strconv.Itoa(ttl) + "s",
		}))
		c := server.Alice()
		first := c.Pause(t, harness.AskOnce)
		reportsReady(t, c)
		second := c.Pause(t, harness.AskOnce)
		reportsReady(t, c, "full")
		refused := func() int {
			t.Helper()
			a := c.Post(t, harness.Program{Code: "print(1)"})
			a.Fails(t, http.StatusServiceUnavailable, "No sandbox is free; retry shortly")
			seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
			if err != nil {
				t.Fatalf("got %v with the Retry-After %q, want a number", a, a.Header.Get("Retry-After"))
			}
			return seconds
		}
		if seconds := refused(); seconds < ttl/2 || seconds > ttl {
			t.Errorf("Retry-After is %d while all programs are paused for %d s, want the end of the first pause", seconds, ttl)
		}
		c.Post(t, first.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
		reportsReady(t, c)
		begun := harness.NewMark()
		running := sendLater(t, c, harness.Program{Code: "import time\n" + begun.Line() + "time.sleep(6)\nprint(1)"})
		begun.Await(t, 1)
		if seconds := refused(); seconds != 2 {
			t.Errorf("Retry-After is %d while a program runs, which may end at any moment: want 2", seconds)
		}
		ran := <-running
		ran.Completes(t, "1\n")
		reportsReady(t, c)
		c.Post(t, second.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
	})
}

// TestDrainDelay stops a server that lets load balancers know first: until the delay is over it
// says that it is draining, and serves everything. Only then what is paused ends.
func TestDrainDelay(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		const delay = 3 * time.Second
		server := harness.ServeAlone(t, s, harness.With(harness.Quick(t), harness.Settings{"DRAIN_DELAY": delay.String()}))
		c := server.Alice()
		goesOn, waits := c.Pause(t, harness.AskOnce), c.Pause(t, harness.AskOnce)
		seen := tells(t, c, nil, waits)
		began := time.Now()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			endBySignal(t, server, syscall.SIGTERM)
		}()
		if err := harness.Within(delay/2, func() error { return readyFor(health(t, c, "/ready"), []string{"draining"}) }); err != nil {
			t.Errorf("GET /ready after SIGTERM: %v", err)
		}
		if a := health(t, c, "/health"); a.HTTPStatus != http.StatusOK {
			t.Errorf("GET /health after SIGTERM: got %v, want 200", a)
		}
		c.Post(t, goesOn.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
		c.Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
		if took := time.Since(began); took > delay {
			t.Errorf("the checks took %v, which is more than the delay of %v: they show nothing", took, delay)
		}
		<-ended
		if took := time.Since(began); took < delay {
			t.Errorf("the server ended after %v, want %v at least", took, delay)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		c.Post(t, waits.Continue(harness.Echo)).Fails(t, 400, "Execution expired")
		ends(t, c, seen, "cancelled")
	})
}

// TestSecondSignal ends a server at once that is draining.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	server := harness.ServeAlone(t, harness.ProcessSetup(), harness.With(harness.Quick(t), harness.Settings{"DRAIN_DELAY": "1m"}))
	if err := server.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c := server.Alice()
	if err := harness.Within(answerLimit, func() error { return readyFor(health(t, c, "/ready"), []string{"draining"}) }); err != nil {
		t.Fatal(err)
	}
	server.Heirs = server.Family()[1:]
	if err := server.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-server.Exited:
	case <-time.After(2 * time.Second):
		t.Error("the server still runs after a second SIGTERM")
	}
	// The next server clears up what this one could not.
	server.Settings["DRAIN_DELAY"] = "0s"
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
}

// TestStarting asks a server while it starts, which takes a while since its Python imports
// libraries: it lives and says that it is starting. A program that comes then runs as soon as it can.
func TestStarting(t *testing.T) {
	t.Parallel()
	s, err := harness.NewServer(harness.With(harness.Common, harness.Settings{"ADDR": harness.FreeAddr(t)}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Launch(); err != nil {
		t.Fatal(err)
	}
	harness.StopAfter(t, s)
	c := harness.Client{URL: "http://" + s.Settings["ADDR"], Key: "key-a"}
	var first harness.Answer
	err = harness.Within(answerLimit, func() error {
		first, err = c.Request(t.Context(), http.MethodGet, "/ready", nil, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := readyFor(first, []string{"starting"}); err != nil {
		t.Errorf("the first answer to GET /ready: %v", err)
	}
	if a := health(t, c, "/health"); a.HTTPStatus != http.StatusOK {
		t.Errorf("GET /health of a server that starts: got %v, want 200", a)
	}
	answer := sendLater(t, c, harness.Program{Code: "print(1)"})
	if err := s.Await(); err != nil {
		t.Fatal(err)
	}
	early := <-answer
	early.Completes(t, "1\n")
	reportsReady(t, c)
}
