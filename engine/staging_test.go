package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"fermata/engine"
	"fermata/engine/core"
	"fermata/engine/enginetest"
	"fermata/engine/sandbox/sandboxtest"
)

// A stage counts how often it is asked.
type stage struct {
	inputs            []core.InputFile
	err               error
	staged, discarded int
}

func (s *stage) Stage(context.Context) ([]core.InputFile, error) {
	s.staged++
	return s.inputs, s.err
}

func (s *stage) Discard(context.Context) { s.discarded++ }

// stagedStart is a start whose request contains files.
func stagedStart(s *stage, key, request string) engine.Start {
	return engine.Start{
		Principal: enginetest.Principal, Session: "session", Code: json.RawMessage(`"end"`), Timeout: time.Minute,
		Key: key, Request: request, Staging: s,
	}
}

// Files of a request are stored when its program begins: not by a start that is refused, and once by
// starts with one key.
func TestStaging(t *testing.T) {
	e := enginetest.New(t, sandboxtest.New(enginetest.Server), func(o *engine.Options) { o.MaxInputSize = 1 << 20 })
	begin := func(s *stage, key, request string) error {
		_, err := e.Engine.Start(t.Context(), stagedStart(s, key, request))
		return err
	}
	var good stage
	if err := begin(&good, "", "r"); err != nil || good.staged != 1 || good.discarded != 0 {
		t.Errorf("a start: %v, staged %d times and discarded %d times, want 1 and 0", err, good.staged, good.discarded)
	}
	var keyed stage
	for range 2 {
		if err := begin(&keyed, "key", "r"); err != nil {
			t.Errorf("a start with a key: %v", err)
		}
	}
	if err := begin(&keyed, "key", "other"); !errors.Is(err, engine.ErrKeyReused) {
		t.Errorf("another start with the key: got %v, want ErrKeyReused", err)
	}
	if keyed.staged != 1 || keyed.discarded != 0 {
		t.Errorf("with a key: staged %d times and discarded %d times, want 1 and 0", keyed.staged, keyed.discarded)
	}
	failing := stage{err: errors.New("full")}
	if err := begin(&failing, "", "r"); !errors.Is(err, failing.err) || failing.discarded != 1 {
		t.Errorf("files that cannot be stored: got %v, discarded %d times, want the error and 1", err, failing.discarded)
	}
	large := stage{inputs: []core.InputFile{{Name: "a", Size: 2 << 20}}}
	if err := begin(&large, "", "r"); err == nil || large.staged != 1 || large.discarded != 1 {
		t.Errorf("files without room: got %v, staged %d times and discarded %d times, want an error, 1 and 1", err, large.staged, large.discarded)
	}
}

func TestRefusedStartsStageNothing(t *testing.T) {
	p := sandboxtest.New(enginetest.Server)
	e := enginetest.New(t, p, func(o *engine.Options) { o.MaxRunning = 1 })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := start(ctx, e, enginetest.Principal, "hang")
		done <- err
	}()
	<-p.Hanging()
	var s stage
	if _, err := e.Engine.Start(t.Context(), stagedStart(&s, "", "r")); !errors.Is(err, engine.ErrTooMany) || s.staged != 0 {
		t.Errorf("got %v, staged %d times, want ErrTooMany and 0", err, s.staged)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
