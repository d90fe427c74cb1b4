package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
	"fermata/engine/sandbox"
	"fermata/engine/sandbox/sandboxtest"
	"fermata/stubs"
)

// A told journal is what the store has of one.
type told struct {
	// events are types, with what tells events of one type apart.
	events         []string
	stdout, stderr string
}

// tell reads a journal, and checks its numbers, its times and the offsets of its output.
func tell(t *testing.T, store continuation.Store, id string) told {
	t.Helper()
	events, err := store.Events(context.Background(), id, 0, 1<<30)
	if err != nil {
		t.Fatalf("events of execution %s: %v", id, err)
	}
	var j told
	var last time.Time
	for i, event := range events {
		var e struct {
			journal.Head
			Call, Stream, Text, Status string
			Offset                     int
			Round                      int
		}
		if err := json.Unmarshal(event.Content, &e); err != nil {
			t.Fatalf("event %s: %v", event.Content, err)
		}
		if want := int64(i) + 1; event.Seq != want || e.Seq != want {
			t.Errorf("event %d is stored as number %d: %s", want, event.Seq, event.Content)
		}
		if at := time.Time(e.Time); at.Before(last) {
			t.Errorf("event %d is from before its predecessor", e.Seq)
		} else {
			last = at
		}
		name := e.Type
		switch e.Type {
		case journal.TypeOutput:
			name += " " + e.Text
			text := &j.stdout
			if e.Stream == "stderr" {
				text = &j.stderr
			}
			if e.Offset != len(*text) {
				t.Errorf("output %q has offset %d, want %d", e.Text, e.Offset, len(*text))
			}
			*text += e.Text
		case journal.TypeCallStarted, journal.TypeCallCompleted, journal.TypeCallFailed:
			name += " " + e.Call
		case journal.TypePaused, journal.TypeResumed:
			name = fmt.Sprint(name, " ", e.Round)
		case journal.TypeEnded:
			name += " " + e.Status
		}
		j.events = append(j.events, name)
	}
	return j
}

// is checks the events of a journal, and that it has the output of an answer.
func (j told) is(t *testing.T, answer core.Outcome, want ...string) {
	t.Helper()
	if !slices.Equal(j.events, want) {
		t.Errorf("the journal has\n\t%s\nwant\n\t%s", strings.Join(j.events, "\n\t"), strings.Join(want, "\n\t"))
	}
	if j.stdout != answer.Stdout || j.stderr != answer.Stderr {
		t.Errorf("the journal has the output %q and %q, the answer %q and %q", j.stdout, j.stderr, answer.Stdout, answer.Stderr)
	}
}

// talk is a program with two pauses, and talked its journal. The first text is written by itself,
// the others with the pause or the end that follows them.
const talk = "out:a nap err:b ask out:c ask out:d err:e end"

var talked = []string{
	"execution.started", "output a", "output b", "call.started call_001", "execution.paused 1",
	"execution.resumed 1", "call.completed call_001", "output c", "call.started call_002", "execution.paused 2",
	"execution.resumed 2", "call.completed call_002", "output d", "output e", "execution.ended completed",
}

func starting(code, key string) Start {
	return Start{
		Principal: "ada", Session: "s", Code: json.RawMessage(`"` + code + `"`), Tools: []stubs.Tool{{Name: "ask"}},
		Timeout: time.Minute, Key: key, Request: "start",
	}
}

// answering answers the call of a pause.
func answering(paused core.Outcome) Resume {
	return Resume{
		Principal: "ada", Token: paused.Token, Request: paused.Token,
		Results: []core.Result{{CallID: paused.Calls[0].ID, Value: json.RawMessage(`1`)}},
	}
}

// A client sends each request until the store is there.
func patient(t *testing.T, try func() (core.Outcome, error)) core.Outcome {
	t.Helper()
	for range 10 {
		outcome, err := try()
		if err == nil {
			return outcome
		}
		if !errors.Is(err, continuation.ErrUnavailable) {
			t.Fatal(err)
		}
		time.Sleep(2 * saveRetry)
	}
	t.Fatal("the store was away for too long")
	return core.Outcome{}
}

// converse starts a program and answers its calls until it ends.
func converse(t *testing.T, e *Engine, s Start) (id string, answer core.Outcome) {
	t.Helper()
	s.Began = func(execution string) { id = execution }
	outcome := patient(t, func() (core.Outcome, error) { return e.Start(t.Context(), s) })
	return id, goOn(t, e, outcome)
}

// goOn answers the calls of a program until it ends.
func goOn(t *testing.T, e *Engine, outcome core.Outcome) core.Outcome {
	t.Helper()
	for outcome.State == core.Paused {
		r := answering(outcome)
		outcome = patient(t, func() (core.Outcome, error) { return e.Resume(t.Context(), r) })
	}
	return outcome
}

func newTalker(t *testing.T, o Options) *Engine {
	t.Helper()
	e, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func closing(t *testing.T, e *Engine) {
	t.Helper()
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestJournalOfAConversation(t *testing.T) {
	o := stickyOptions(t, sandboxtest.New("home.2"), t.Output())
	synctest.Test(t, func(t *testing.T) {
		e := newTalker(t, o)
		defer closing(t, e)
		id, answer := converse(t, e, starting(talk, ""))
		tell(t, o.Store, id).is(t, answer, talked...)
		record, err := o.Store.Get(t.Context(), id)
		if err != nil || record.Events != int64(len(talked)) {
			t.Errorf("the record counts %d events, %v, want %d", record.Events, err, len(talked))
		}
		summary, err := o.Store.Summary(t.Context(), id)
		if err != nil || !summary.Ended {
			t.Errorf("summary %+v, %v, want that of an execution that has ended", summary, err)
		}
	})
}

// A store that fails once, at whichever write, and whether it has written or not, leaves no gap in
// a journal and repeats nothing.
func TestJournalWhoseStoreFails(t *testing.T) {
	for _, written := range []bool{false, true} {
		for _, key := range []string{"", "k"} {
			for n := int32(1); ; n++ {
				failed := false
				t.Run(fmt.Sprintf("write %d, written %t, key %q", n, written, key), func(t *testing.T) {
					failed = failAt(t, n, written, key)
				})
				if !failed {
					break
				}
			}
		}
	}
}

// failAt reports whether there was an n-th write, which has failed then.
func failAt(t *testing.T, n int32, written bool, key string) (failed bool) {
	o := stickyOptions(t, sandboxtest.New("home.2"), t.Output())
	store := o.Store
	var puts atomic.Int32
	o.Store = &hooked{Store: store, put: func(ctx context.Context, r continuation.Record, ttl time.Duration, c continuation.Chapter) error {
		if puts.Add(1) != n {
			return store.Put(ctx, r, ttl, c)
		}
		if written {
			if err := store.Put(ctx, r, ttl, c); err != nil {
				t.Error(err)
			}
		}
		return continuation.ErrUnavailable
	}}
	synctest.Test(t, func(t *testing.T) {
		e := newTalker(t, o)
		s := starting(talk, key)
		var id string
		s.Began = func(execution string) { id = execution }
		outcome, err := e.Start(t.Context(), s)
		switch {
		case err != nil && key == "":
			// Nobody can ask for this execution again.
			closing(t, e)
			tell(t, store, id).is(t, core.Outcome{Stdout: "a", Stderr: "b"}, append(slices.Clone(talked[:5]), "call.failed call_001", "execution.ended cancelled")...)
		case err != nil && id == "":
			// The start was not recorded, and the program did not run.
			_, outcome = converse(t, e, s)
			closing(t, e)
			if id = s.execution(); outcome.State == core.Completed {
				tell(t, store, id).is(t, outcome, talked...)
			} else {
				tell(t, store, id).is(t, outcome, "execution.started", "execution.ended error")
			}
		default:
			if err != nil {
				outcome = patient(t, func() (core.Outcome, error) { return e.Start(t.Context(), s) })
			}
			outcome = goOn(t, e, outcome)
			closing(t, e)
			tell(t, store, id).is(t, outcome, talked...)
		}
	})
	return puts.Load() >= n
}

// A claim may reach the store although it is reported as failed. What the program prints before the
// client claims again is not taken for what that claim has written, nor is the claim told twice.
func TestJournalOfAClaimThatWasStoredAllTheSame(t *testing.T) {
	for _, published := range []bool{false, true} {
		for _, same := range []bool{false, true} {
			t.Run(fmt.Sprintf("published %t, same request %t", published, same), func(t *testing.T) {
				testStoredClaim(t, published, same)
			})
		}
	}
}

func testStoredClaim(t *testing.T, published, same bool) {
	o := stickyOptions(t, sandboxtest.New("home.2"), t.Output())
	store := o.Store
	var well atomic.Bool
	o.Store = &hooked{Store: store, put: func(ctx context.Context, r continuation.Record, ttl time.Duration, c continuation.Chapter) error {
		err := store.Put(ctx, r, ttl, c)
		if r.Request == "lost" && !well.Load() {
			return continuation.ErrUnavailable
		}
		return err
	}}
	synctest.Test(t, func(t *testing.T) {
		e := newTalker(t, o)
		defer closing(t, e)
		s := starting("out:a ask end", "")
		var id string
		s.Began = func(execution string) { id = execution }
		paused := patient(t, func() (core.Outcome, error) { return e.Start(t.Context(), s) })
		r := answering(paused)
		again := r.Request
		if same {
			again = "lost"
		}
		r.Request = "lost"
		if _, err := e.Resume(t.Context(), r); !errors.Is(err, continuation.ErrUnavailable) {
			t.Fatalf("Resume = %v, want that the store is away", err)
		}
		x := e.executions.find(id)
		inside(x, func() {
			x.conversation.chronicle.noteOutput(sandbox.Output{Offset: 1, Data: []byte("b")})
			if published {
				x.conversation.catchUp(func(error) {})
			}
		})
		synctest.Wait()
		well.Store(true)
		r.Request = again
		if _, err := e.Resume(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"execution.started", "output a", "call.started call_001", "execution.paused 1",
			"execution.resumed 1", "call.completed call_001", "output b",
		}
		if !same {
			want = append(want, want[4:6]...)
		}
		j := tell(t, store, id)
		j.is(t, core.Outcome{Stdout: "ab"}, append(want, "execution.ended completed")...)
	})
}

// A server that takes over what runs, or is paused, repeats nothing in the journal, and leaves
// nothing out.
func TestJournalOfTakeOvers(t *testing.T) {
	t.Run("running", func(t *testing.T) {
		p := newPair(t, time.Minute)
		s := starting("out:a hang", "k")
		id := s.execution()
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = p.engines["a.1"].Start(ctx, s)
		}()
		<-p.views["a.1"].Hanging()
		store := p.engines["b.1"].o.Store
		eventually(t, "the output is written", func() bool {
			record, err := store.Get(t.Context(), id)
			return err == nil && record.Events == 2
		})
		leave()
		<-gone
		p.views["a.1"].Print(p.engines["a.1"].executions.find(id).sandbox.Ref, "b")
		p.phonebook.lose("a.1")
		p.engines["a.1"].members.Lapse()
		x, err := p.takeOver(t, id)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "new output is written", func() bool { return len(tell(t, store, id).events) == 3 })
		x.cancel()
		answer, err := p.engines["b.1"].Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		tell(t, store, id).is(t, answer, "execution.started", "output a", "output b", "execution.ended cancelled")
	})
	t.Run("paused", func(t *testing.T) {
		p := newPair(t, time.Minute)
		s := starting("out:a ask out:c end", "")
		var id string
		s.Began = func(execution string) { id = execution }
		paused, err := p.engines["a.1"].Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		store := p.engines["b.1"].o.Store
		p.views["a.1"].Print(p.engines["a.1"].executions.find(id).sandbox.Ref, "b")
		p.phonebook.lose("a.1")
		p.engines["a.1"].members.Lapse()
		if _, err := p.takeOver(t, id); err != nil {
			t.Fatal(err)
		}
		want := []string{"execution.started", "output a", "call.started call_001", "execution.paused 1", "output b"}
		eventually(t, "what was printed in the pause is written", func() bool { return len(tell(t, store, id).events) >= len(want) })
		answer, err := p.engines["b.1"].Resume(t.Context(), answering(paused))
		if err != nil {
			t.Fatal(err)
		}
		tell(t, store, id).is(t, answer, append(want, "execution.resumed 1", "call.completed call_001", "output c", "execution.ended completed")...)
	})
}

// forgetful is a store without summaries.
type forgetful struct{ continuation.Store }

func (forgetful) Summary(context.Context, string) (continuation.Summary, error) {
	return continuation.Summary{}, continuation.ErrNotFound
}

// An execution whose summary is lost is taken over all the same.
func TestTakeOverWithoutASummary(t *testing.T) {
	p := newPair(t, time.Minute)
	paused, x := p.start(t, "a.1")
	b := p.engines["b.1"]
	store := b.o.Store
	b.o.Store = forgetful{store}
	p.phonebook.lose("a.1")
	p.engines["a.1"].members.Lapse()
	if _, err := p.takeOver(t, x.id); err != nil {
		t.Fatal(err)
	}
	answer, err := p.resume(t, "b.1", paused)
	if err != nil {
		t.Fatal(err)
	}
	tell(t, store, x.id).is(t, answer, "execution.started", "call.started call_001", "execution.paused 1",
		"execution.resumed 1", "call.completed call_001", "execution.ended completed")
}

// A program is killed at the end of its time also while a write to the store is under way.
func TestKillWhileTheStoreHangs(t *testing.T) {
	script := sandboxtest.New("home.2")
	o := stickyOptions(t, script, t.Output())
	killed := make(chan struct{})
	o.Store = &hooked{Store: o.Store, put: func(context.Context, continuation.Record, time.Duration, continuation.Chapter) error {
		<-killed
		return continuation.ErrUnavailable
	}}
	e := newTalker(t, o)
	s := starting("out:a hang", "")
	s.Timeout = 100 * time.Millisecond
	done := make(chan struct{})
	go func() {
		defer close(done)
		if answer, err := e.Start(t.Context(), s); err != nil || answer.State != core.TimedOut {
			t.Errorf("Start = %+v, %v, want it timed out", answer, err)
		}
	}()
	eventually(t, "the program is killed", func() bool { return script.Heard("s1") == "GK" })
	close(killed)
	<-done
	closing(t, e)
}

// scripted has words that are easy to tell.
type scripted struct{ Words }

func (scripted) End(string, core.Outcome) (text, added string) { return "", "lost\n" }

// What the server adds to stderr is told also if the sandbox has gone with the rest of it.
func TestJournalOfALostSandbox(t *testing.T) {
	script := sandboxtest.New("home.2")
	o := stickyOptions(t, script, t.Output())
	o.Words = scripted{}
	synctest.Test(t, func(t *testing.T) {
		e := newTalker(t, o)
		defer closing(t, e)
		time.AfterFunc(time.Second, func() { script.Die("s1") })
		id, answer := converse(t, e, starting("out:a hang", ""))
		if answer.Reason != core.SandboxLost {
			t.Errorf("the answer is %+v, want the sandbox lost", answer)
		}
		tell(t, o.Store, id).is(t, core.Outcome{Stdout: "a", Stderr: "lost\n"},
			"execution.started", "output a", "output lost\n", "execution.ended error")
	})
}

// A server has the record of an execution as the store has it: what comes next builds on that.
func TestRecordIsAsStored(t *testing.T) {
	o := stickyOptions(t, sandboxtest.New("home.2"), t.Output())
	e := newTalker(t, o)
	defer closing(t, e)
	s := starting("out:a ask out:b ask end", "")
	var id string
	s.Began = func(execution string) { id = execution }
	paused, err := e.Start(t.Context(), s)
	for range 2 {
		if err != nil || paused.State != core.Paused {
			t.Fatalf("the program is %+v, %v, want it paused", paused, err)
		}
		inside(e.executions.find(id), func() {
			got := e.executions.find(id).conversation.record
			stored, err := o.Store.Get(t.Context(), id)
			if err != nil {
				t.Error(err)
			}
			if got.Version != stored.Version || got.Events != stored.Events || got.Events == 0 || string(got.Printed) != string(stored.Printed) {
				t.Errorf("the server has version %d with %d events and %s, the store version %d with %d events and %s",
					got.Version, got.Events, got.Printed, stored.Version, stored.Events, stored.Printed)
			}
		})
		paused, err = e.Resume(t.Context(), answering(paused))
	}
}
