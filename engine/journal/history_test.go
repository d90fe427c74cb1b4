package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fermata/continuation"
)

// kept is a store with one execution. Real stores are tested by their own tests and by those in tests/live.
type kept struct {
	continuation.Journals
	mu      sync.Mutex
	summary continuation.Summary
	record  continuation.Record
	events  []continuation.Event
	watches []chan struct{}
	reads   int
}

const testID = "11111111-2222-4333-8444-555555555555"

// keep returns a store that has an execution with these events.
func keep(t *testing.T, s Summary, ended bool, events ...Event) *kept {
	t.Helper()
	s.ID, s.Principal = testID, "ada"
	content, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	k := &kept{
		summary: continuation.Summary{ID: testID, Principal: "ada", Created: time.UnixMilli(1000), Ended: ended, Content: content},
		record:  continuation.Record{ID: testID, State: "paused", Round: 1, Issued: 2, Owner: "machine.instance"},
	}
	k.add(t, events...)
	return k
}

// add appends events, as a write would.
func (k *kept) add(t *testing.T, events ...Event) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range events {
		h := e.head()
		h.Seq, h.Type, h.Time = int64(len(k.events)+1), typeOf(e), Moment(time.UnixMilli(int64(1000*len(k.events))))
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		k.events = append(k.events, continuation.Event{Seq: h.Seq, Content: line})
		if h.Type == TypeEnded {
			k.summary.Ended, k.record.State = true, "completed"
		}
	}
	for _, w := range k.watches {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

func (k *kept) Get(context.Context, string) (continuation.Record, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.record.ID == "" {
		return k.record, continuation.ErrNotFound
	}
	return k.record, nil
}

func (k *kept) Summary(_ context.Context, id string) (continuation.Summary, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if id != testID {
		return continuation.Summary{}, continuation.ErrNotFound
	}
	return k.summary, nil
}

func (k *kept) Events(_ context.Context, _ string, after int64, size int) (list []continuation.Event, _ error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reads++
	for _, e := range k.events {
		if e.Seq > after {
			if size -= len(e.Content); size < 0 && len(list) > 0 {
				break
			}
			list = append(list, e)
		}
	}
	return list, nil
}

func (k *kept) Watch(ctx context.Context, _ string) (<-chan struct{}, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	w := make(chan struct{}, 1)
	k.watches = append(k.watches, w)
	context.AfterFunc(ctx, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.watches = slices.DeleteFunc(k.watches, func(other chan struct{}) bool { return other == w })
		close(w)
	})
	return w, nil
}

func historyOf(k *kept) *History {
	return NewHistory(k, func(context.Context, string) error { return nil })
}

func find(t *testing.T, k *kept) *Execution {
	t.Helper()
	x, err := historyOf(k).Find(t.Context(), Viewer{Principal: "ada"}, testID)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// pausedStory returns the events of an execution that is paused, with one call that has completed, one that
// has failed, and one that waits.
func pausedStory() []Event {
	return []Event{
		&Started{Execution: testID, Code: json.RawMessage(`"code"`)},
		&Output{Stream: "stdout", Text: strings.Repeat("é", tailBytes) + "end"},
		&CallStarted{Call: "call_001", Record: "ptc:1", Tool: "ask", Input: json.RawMessage(`{"n":1}`)},
		&CallStarted{Call: "call_002", Record: "ptc:2", Tool: "ask", Input: json.RawMessage(`{"n":2}`), Line: 7},
		&Paused{Round: 1, Waiting: []string{"call_001", "call_002"}},
		&Resumed{Round: 1},
		&CallCompleted{Call: "call_001", Record: "ptc:1", Output: json.RawMessage("null"), Took: 5},
		&CallStarted{Call: "call_003", Record: "ptc:3", Tool: "ask"},
		&CallFailed{Call: "call_003", Record: "ptc:3", Error: "no"},
		&Paused{Round: 2, Waiting: []string{"call_002"}},
	}
}

func TestFindSeesOneself(t *testing.T) {
	h := historyOf(keep(t, Summary{}, false))
	for _, c := range []struct {
		viewer Viewer
		id     string
		found  bool
	}{
		{Viewer{Principal: "ada"}, testID, true},
		{Viewer{Principal: "op", Operator: true}, testID, true},
		{Viewer{Principal: "bob"}, testID, false},
		{Viewer{}, testID, false},
		{Viewer{Principal: "ada"}, strings.ToUpper(testID), true}, // digits alone
		{Viewer{Principal: "ada"}, "{" + testID + "}", false},
		{Viewer{Principal: "ada"}, "", false},
	} {
		if _, err := h.Find(t.Context(), c.viewer, c.id); (err == nil) != c.found || err != nil && !errors.Is(err, continuation.ErrNotFound) {
			t.Errorf("%+v looks for %q: %v", c.viewer, c.id, err)
		}
	}
}

func TestDetailOfPause(t *testing.T) {
	d, err := find(t, keep(t, Summary{Mode: Full, Status: StatusRunning}, false, pausedStory()...)).Detail(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.Status != StatusPaused || d.Rounds != 1 || d.Calls != 2 || d.Server != ServerName("machine.other") || d.PauseExpires == nil {
		t.Errorf("summary: %+v", d.Summary)
	}
	if len(d.Waiting) != 1 || d.Waiting[0].Call != "call_002" || d.Waiting[0].Line != 7 || string(d.Waiting[0].Input) != `{"n":2}` {
		t.Errorf("waiting: %+v", d.Waiting)
	}
	if want := strings.Repeat("é", (tailBytes-4)/2) + "end"; *d.Stdout != want || *d.Stderr != "" {
		t.Errorf("stdout has %d bytes %.10q…, want %d", len(*d.Stdout), *d.Stdout, len(want))
	}
	if want := map[string]int{CallIsWaiting: 0, CallIsExecuting: 1, CallIsCompleted: 1, CallHasFailed: 1}; fmt.Sprint(d.States) != fmt.Sprint(want) {
		t.Errorf("states: %v, want %v", d.States, want)
	}
}

func TestModesHide(t *testing.T) {
	x := find(t, keep(t, Summary{Mode: Off}, true, pausedStory()...))
	if d, err := x.Detail(t.Context()); err != nil || d.Code != nil || d.Stdout != nil || d.States != nil {
		t.Errorf("off: %+v, %v", d, err)
	}
	if _, _, err := x.Events(t.Context(), 0, 10); !errors.Is(err, continuation.ErrNotFound) {
		t.Errorf("events: %v", err)
	}
	if _, _, err := x.Calls(t.Context(), 0, 10); !errors.Is(err, continuation.ErrNotFound) {
		t.Errorf("calls: %v", err)
	}
	if d, err := find(t, keep(t, Summary{Mode: Calls}, true)).Detail(t.Context()); err != nil || d.Stdout != nil {
		t.Errorf("calls: %+v, %v", d, err)
	}
}

func TestCallPages(t *testing.T) {
	x := find(t, keep(t, Summary{Mode: Full, Parent: "outer"}, false, pausedStory()...))
	for limit := 1; limit <= 4; limit++ {
		var all []CallRecord
		for after := int64(0); ; {
			page, next, err := x.Calls(t.Context(), after, limit)
			if err != nil || len(page) > limit {
				t.Fatal(len(page), err)
			}
			all = append(all, page...)
			if after = next; next == 0 {
				break
			}
		}
		var got []string
		for _, r := range all {
			got = append(got, r.Call+" "+r.Status+" "+*r.Parent)
		}
		if want := "call_001 completed outer, call_002 executing outer, call_003 failed outer"; strings.Join(got, ", ") != want {
			t.Errorf("pages of %d: %s, want %s", limit, strings.Join(got, ", "), want)
		}
		if string(all[0].Output) != "null" || *all[0].Took != 5 {
			t.Errorf("first record: %+v", all[0])
		}
	}
}

// A hundred followers of one execution get every event once, and the store is read about once for each event.
func TestFollowersShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const followers, rounds = 100, 50
		k := keep(t, Summary{Mode: Full}, false, &Started{})
		x := find(t, k)
		var wg sync.WaitGroup
		for range followers {
			wg.Go(func() {
				f, err := x.Follow(t.Context(), 0)
				if err != nil {
					t.Error(err)
					return
				}
				defer f.Close()
				for seq := int64(0); ; {
					list, err := f.Next(t.Context(), time.Hour)
					if errors.Is(err, io.EOF) {
						if seq != rounds+2 {
							t.Errorf("a follower got %d events, want %d", seq, rounds+2)
						}
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					for _, e := range list {
						if seq++; e.Seq != seq {
							t.Errorf("event %d after %d", e.Seq, seq-1)
						}
					}
				}
			})
		}
		synctest.Wait()
		for range rounds {
			k.add(t, &Output{Stream: "stdout", Text: "x"})
			synctest.Wait()
		}
		k.add(t, &Ended{})
		wg.Wait()
		synctest.Wait()
		// After each write there is one read of the events, and one that finds nothing more. In addition, each
		// follower may read once when it begins.
		if most := 3*(rounds+2) + followers; k.reads > most {
			t.Errorf("%d reads for %d writes and %d followers, want at most %d", k.reads, rounds+2, followers, most)
		}
		if s := x.history.shelf; len(s.batches) != 0 || len(s.feeds) != 0 || len(k.watches) != 0 {
			t.Errorf("%d batches, %d feeds and %d watches are left", len(s.batches), len(s.feeds), len(k.watches))
		}
	})
}

func TestFollowerIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, Summary{Mode: Full}, false, &Started{})
		// A follower beyond the last event of an execution that has not ended waits until the execution ends.
		f, err := find(t, k).Follow(t.Context(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Next(t.Context(), time.Second); !errors.Is(err, ErrQuiet) {
			t.Errorf("got %v, want ErrQuiet", err)
		}
		k.add(t, &Ended{})
		if _, err := f.Next(t.Context(), time.Minute); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want io.EOF", err)
		}
		// A follower beyond the last event of an execution that has ended does not wait.
		g, err := find(t, k).Follow(t.Context(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		began := time.Now()
		if _, err := g.Next(t.Context(), time.Hour); !errors.Is(err, io.EOF) || time.Since(began) > 0 {
			t.Errorf("got %v after %v, want io.EOF", err, time.Since(began))
		}
	})
}
