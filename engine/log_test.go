package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
	"fermata/engine/sandbox/sandboxtest"
)

// TestLogTellsForgotten checks that a journal that is ended unseen leaves one line.
func TestLogTellsForgotten(t *testing.T) {
	o := stickyOptions(t, sandboxtest.New("home.2"), t.Output())
	var lines bytes.Buffer
	o.Log = slog.New(slog.NewJSONHandler(&lines, nil))
	e := newTalker(t, o)
	defer closing(t, e)
	// What a server leaves whose pause has run out while it was away: a journal without a record.
	r := continuation.Record{
		ID: "5d2e5e9b-0b7e-4b6c-9d4e-0a1b2c3d4e5f", Session: "abcdefghijklmnopqrstu", Principal: "ada", State: string(core.Paused), Version: 1,
		Created: time.Now(), Owner: "another.1",
	}
	l := e.newLedger(r, e.newChronicle(Start{Principal: "ada", Session: r.Session, Code: json.RawMessage(`""`)}, r, &mandate{}))
	l.chronicle.Note(&journal.Paused{Round: 1})
	chapter, err := l.chronicle.Chapter(&r)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Store.Put(t.Context(), r, time.Millisecond, chapter); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	lines.Reset()
	for range 2 {
		if err := e.EndForgotten(context.Background(), r.ID); err != nil {
			t.Fatal(err)
		}
	}
	var line struct {
		Message   string `json:"msg"`
		Execution string `json:"execution"`
		Principal string `json:"principal"`
		Round     int    `json:"round"`
	}
	if bytes.Count(lines.Bytes(), []byte("\n")) != 1 {
		t.Fatalf("logged %q, want one line", lines.String())
	}
	if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if line.Message != "ended the journal of an execution that ran out while no server had it" || line.Execution != r.ID || line.Principal != "ada" || line.Round != 1 {
		t.Errorf("logged %s", lines.String())
	}
}
