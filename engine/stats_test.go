package engine

import (
	"encoding/json"
	"testing"
	"time"

	"fermata/engine/core"

	"github.com/google/go-cmp/cmp"
)

// counted returns the figures of executions, without zeros.
func counted(s Stats) map[string]int {
	counts := map[string]int{"pauses": int(s.Pauses), "takeovers": int(s.Takeovers)}
	for state, n := range s.Executions {
		counts["now "+string(state)] = n
	}
	for state, n := range s.Ended {
		counts["ended "+string(state)] = int(n)
	}
	for reason, n := range s.Failures {
		counts["failed "+string(reason)] = int(n)
	}
	for name, n := range counts {
		if n == 0 {
			delete(counts, name)
		}
	}
	return counts
}

func TestStatsOfExecutions(t *testing.T) {
	p := newPair(t, time.Minute)
	check := func(when, server string, want map[string]int) {
		t.Helper()
		if diff := cmp.Diff(want, counted(p.engines[server].Stats())); diff != "" {
			t.Errorf("%s the figures of %s are wrong (-want +got):\n%s", when, server, diff)
		}
	}
	check("at first", "a.1", map[string]int{})
	paused, x := p.start(t, "a.1")
	// Stats does not wait for the goroutine of an execution, which may wait for the store.
	inside(x, func() { check("while it is paused", "a.1", map[string]int{"now paused": 1, "pauses": 1}) })
	if outcome, err := p.resume(t, "a.1", paused); err != nil || outcome.State != core.Completed {
		t.Fatalf("Resume = %+v, %v, want it completed", outcome, err)
	}
	check("at the end", "a.1", map[string]int{"pauses": 1, "ended completed": 1})

	outcome, err := p.engines["a.1"].Start(t.Context(), Start{Principal: "ada", Session: "s", Code: json.RawMessage(`"ask"`), Timeout: time.Minute})
	if err != nil || outcome.Reason != core.UngrantedTool {
		t.Fatalf("Start = %+v, %v, want it failed", outcome, err)
	}
	check("after a failure", "a.1", map[string]int{"pauses": 1, "ended completed": 1, "ended failed": 1, "failed ungranted_tool": 1})

	paused, x = p.start(t, "a.1")
	p.phonebook.lose("a.1")
	if _, err := p.takeOver(t, x.id); err != nil {
		t.Fatalf("takeOver = %v", err)
	}
	check("after a takeover", "b.1", map[string]int{"now paused": 1, "takeovers": 1})
	if outcome, err := p.resume(t, "b.1", paused); err != nil || outcome.State != core.Completed {
		t.Fatalf("Resume = %+v, %v, want it completed", outcome, err)
	}
	check("at its end", "b.1", map[string]int{"takeovers": 1, "ended completed": 1})
}

// Every terminal state and every reason has a figure from the start.
func TestStatsHaveZeros(t *testing.T) {
	var s Stats
	new(tally).read(&s)
	for _, state := range []core.State{core.Completed, core.Failed, core.TimedOut, core.Cancelled, core.Expired} {
		if n, ok := s.Ended[state]; !ok || n != 0 {
			t.Errorf("%s: got %d, %v, want 0", state, n, ok)
		}
	}
	if len(s.Ended) != 5 {
		t.Errorf("ended has %v, want the terminal states", s.Ended)
	}
	for _, reason := range []core.Reason{
		core.RaisedError, core.ExitedCode, core.OutOfMemory, core.StdoutFlood, core.StderrFlood, core.UngrantedTool, core.TooManyRounds, core.TooManyCalls,
		core.TooMuchStored, core.ProtocolBroken, core.SandboxLost,
	} {
		if n, ok := s.Failures[reason]; !ok || n != 0 {
			t.Errorf("%s: got %d, %v, want 0", reason, n, ok)
		}
	}
}
