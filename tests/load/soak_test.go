package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fermata/tests/harness"
)

// soakExecutions is how many programs TestSoak runs unless FERMATA_TEST_SOAK says another number.
const soakExecutions = 10_000

// TestSoak runs thousands of programs, which end in every way, on one server and looks for what
// they leave behind. It takes minutes; `make soak` runs it.
func TestSoak(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		total := soakTotal(t)
		// Answers are kept only for a moment, so that they do not look like a leak.
		server := harness.ServeAlone(t, s, harness.Settings{"PAUSE_TTL": "2s", "KEEP": "1s", "QUEUE_TIMEOUT": "60s"})
		soak(t, server.Alice(), max(50, total/20)) // This makes what rightly stays: buffers and threads.
		before := usageAtRest(t, server)
		soak(t, server.Alice(), total)
		if after := usageAtRest(t, server); !noMoreThan(after, before) {
			t.Errorf("usage after %d executions: %+v, before: %+v", total, after, before)
		}
	})
}

// soakTotal returns how many programs to run.
func soakTotal(t *testing.T) int {
	t.Helper()
	text := os.Getenv("FERMATA_TEST_SOAK")
	if text == "" {
		return soakExecutions
	}
	total, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("FERMATA_TEST_SOAK: %v", err)
	}
	return total
}

// soak runs programs from eight clients at once.
func soak(t *testing.T, c harness.Client, total int) {
	t.Helper()
	ways := []func(ctx context.Context, c harness.Client, i int) error{harness.FiveRounds, raises, exits, isLeft, isDropped}
	var next atomic.Int64
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for i := int(next.Add(1)); i <= total && !t.Failed(); i = int(next.Add(1)) {
				if err := ways[i%len(ways)](t.Context(), c, i); err != nil {
					t.Errorf("execution %d: %v", i, err)
				}
			}
		})
	}
	clients.Wait()
}

// raises runs a program that raises an error after a call.
func raises(ctx context.Context, c harness.Client, i int) error {
	a, err := c.Send(ctx, harness.Program{Code: fmt.Sprintf("await ask(n=%d)\nraise ValueError(%[1]d)", i), Tools: harness.Tools("ask")})
	if err == nil {
		a, err = c.Send(ctx, a.Continue(harness.Echo))
	}
	if want := fmt.Sprintf("ValueError: %d", i); err == nil && a.Error != want {
		return fmt.Errorf("got %v, want the error %q", a, want)
	}
	return err
}

// exits runs a program whose process exits while a child of it still runs.
func exits(ctx context.Context, c harness.Client, i int) error {
	code := fmt.Sprintf("import subprocess\nsubprocess.Popen(['sleep', '60'])\nos._exit(%d)", i%100)
	a, err := c.Send(ctx, harness.Program{Code: code})
	if want := fmt.Sprintf("Sandbox exited with code %d", i%100); err == nil && i%100 != 0 && a.Error != want {
		return fmt.Errorf("got %v, want the error %q", a, want)
	}
	return err
}

// isLeft runs a program that pauses and is never continued.
func isLeft(ctx context.Context, c harness.Client, i int) error {
	a, err := c.Send(ctx, harness.Program{Code: fmt.Sprintf("data = bytearray(1 << 20)\nawait ask(n=%d)", i), Tools: harness.Tools("ask")})
	if err == nil && a.Status != "tool_call_required" {
		return fmt.Errorf("got %v, want a pause", a)
	}
	return err
}

// isDropped runs a program whose client closes the connection while it runs.
func isDropped(ctx context.Context, c harness.Client, _ int) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	a, err := c.Send(ctx, harness.Program{Code: "while True: pass"})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	if err == nil {
		return fmt.Errorf("got %v, want no answer before the client goes", a)
	}
	return err
}

// usageAtRest waits until what a server takes no longer changes, and returns it.
func usageAtRest(t *testing.T, s *harness.Server) harness.Usage {
	t.Helper()
	var u harness.Usage
	err := harness.Within(time.Minute, func() error {
		before := s.Usage()
		// Longer than a pause may last here.
		time.Sleep(3 * time.Second)
		if u = s.Usage(); u.Processes != before.Processes || u.Groups != before.Groups || u.Files != before.Files {
			return fmt.Errorf("the server does not come to rest: %+v, then %+v", before, u)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return u
}

// noMoreThan reports whether u is no more than before, except for noise: connections of this test
// and memory that the Go runtime has not given back yet.
func noMoreThan(u harness.Usage, before harness.Usage) bool {
	return u.Processes <= before.Processes && u.Groups <= before.Groups && u.Files <= before.Files &&
		u.Descriptors <= before.Descriptors+8 && u.Inner <= before.Inner && u.Memory <= before.Memory+32<<20
}
