package engine

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"fermata/engine/core"
	"fermata/stubs"
)

// Every server of a group tells how an execution stands, to its principal alone.
func TestLatest(t *testing.T) {
	p := newPair(t, time.Minute)
	for name, keep := range map[string]bool{"kept": true, "not kept": false} {
		done, err := p.engines["a.1"].Start(t.Context(), Start{
			Principal: "ada", Session: "s", Code: json.RawMessage(`"out:x end"`), Timeout: time.Minute, Keep: keep,
		})
		if err != nil || done.State != core.Completed {
			t.Fatalf("Start = %+v, %v, want it completed", done, err)
		}
		latest, err := p.engines["b.1"].Latest(t.Context(), "ada", done.Execution)
		if !keep && !errors.Is(err, ErrNotKept) || keep && (err != nil || latest.Outcome.State != core.Completed || latest.Outcome.Execution != done.Execution) {
			t.Errorf("%s: Latest = %+v, %v", name, latest, err)
		}
	}
	paused, err := p.engines["a.1"].Start(t.Context(), Start{
		Principal: "ada", Session: "s", Code: json.RawMessage(`"ask"`), Timeout: time.Minute, Approvals: true,
		Tools: []stubs.Tool{{Name: "ask"}}, Traits: map[string]core.Traits{"ask": {Approval: true}},
	})
	if err != nil || paused.State != core.Paused {
		t.Fatalf("Start = %+v, %v, want a pause", paused, err)
	}
	latest, err := p.engines["b.1"].Latest(t.Context(), "ada", paused.Execution)
	if err != nil || latest.Outcome.Token != paused.Token || !slices.Equal(latest.Open, []string{"call_001"}) || latest.Events == 0 {
		t.Errorf("in a pause Latest = %+v, %v", latest, err)
	}
	if latest, err := p.engines["b.1"].Latest(t.Context(), "bob", paused.Execution); !errors.Is(err, ErrNotKept) {
		t.Errorf("for another principal Latest = %+v, %v", latest, err)
	}
}
