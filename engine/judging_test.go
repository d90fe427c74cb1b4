package engine

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
	"fermata/engine/outputs"
	"fermata/engine/sandbox/sandboxtest"
)

// promising returns a contract of files, which are required unless their names begin with a question mark.
func promising(names ...string) *outputs.Contract {
	c := &outputs.Contract{Turn: "turn_1"}
	for _, name := range names {
		o := outputs.Output{Path: name, File: name, Name: strings.TrimPrefix(name, "turn_1/files/"), Description: "for people", Required: name[0] != '?', MinBytes: 1}
		c.Outputs = append(c.Outputs, o)
	}
	return c
}

// statesOf returns what has become of outputs, by path.
func statesOf(judged []outputs.Judged) map[string]outputs.State {
	states := map[string]outputs.State{}
	for _, j := range judged {
		states[j.Path] = j.State
	}
	return states
}

// The engine believes what the sandbox says about outputs only where it cannot check it.
func TestJudgedFiles(t *testing.T) {
	inputs := []core.InputFile{
		{Session: "other", ID: "1", Name: "stale", Size: 1, SHA256: "aa"},
		{Session: "other", ID: "2", Name: "changed", Size: 1, SHA256: "bb"},
		{Session: "other", ID: "3", Name: "fixed", Size: 1, ReadOnly: true},
	}
	for _, c := range []struct {
		name    string
		wanted  []string
		replies [][]sandboxtest.Reply
		want    map[string]outputs.State
	}{
		{
			"contents decide, not names and times",
			[]string{"changed", "stale", "new", "fixed"},
			[][]sandboxtest.Reply{
				listed(`{"files":[{"name":"changed","sha256":"ba"},{"name":"stale","sha256":"aa"},{"name":"new"}]}`), content("v2"), content("x"),
			},
			map[string]outputs.State{"changed": outputs.Produced, "stale": outputs.Missing, "new": outputs.Produced, "fixed": outputs.Missing},
		},
		{
			"what stands in the way",
			[]string{"a", "b", "c", "d", "e", "f"},
			[][]sandboxtest.Reply{listed(`{"wanted":{"a":{"state":"too_large","size":-5},"b":{"state":"not_regular"},"c":{"state":"unreadable"},` +
				`"d":{"state":"produced","size":9},"e":{"state":"made up"},"z":{"state":"too_large"}}}`)},
			map[string]outputs.State{
				"a": outputs.TooLarge, "b": outputs.NotRegular, "c": outputs.Unreadable, "d": outputs.Missing, "e": outputs.Missing, "f": outputs.Missing,
			},
		},
		{
			"the contents that were stored count",
			[]string{"a", "b"},
			[][]sandboxtest.Reply{listed(`{"files":[{"name":"a"},{"name":"b"}]}`), content(), {sandboxtest.Unreadable}},
			map[string]outputs.State{"a": outputs.Empty, "b": outputs.Unreadable},
		},
		{
			"wanted files are stored first",
			[]string{"b", "c"},
			[][]sandboxtest.Reply{listed(`{"files":[{"name":"a"},{"name":"b"},{"name":"c"}]}`), content("1"), {sandboxtest.Piece("2"), sandboxtest.End}},
			map[string]outputs.State{"b": outputs.Produced, "c": outputs.Undelivered},
		},
		{
			"a store that is full",
			[]string{"full", "refused", "a"},
			[][]sandboxtest.Reply{listed(`{"files":[{"name":"full"},{"name":"refused"},{"name":"a"}]}`), content("12"), content("1"), content("1")},
			map[string]outputs.State{"full": outputs.Undelivered, "refused": outputs.Undelivered, "a": outputs.Produced},
		},
		{
			"a file that grows while it is read",
			[]string{"a"},
			[][]sandboxtest.Reply{listed(`{"files":[{"name":"a"}]}`), content("12345678", "9")},
			map[string]outputs.State{"a": outputs.Undelivered},
		},
		{"no listing", []string{"a"}, [][]sandboxtest.Reply{content("x")}, map[string]outputs.State{"a": outputs.Missing}},
		{
			"more files than the limit of 4, all wanted",
			[]string{"a", "b", "c", "d", "e"},
			[][]sandboxtest.Reply{
				listed(`{"files":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"},{"name":"e"}]}`),
				content("1"), content("1"), content("1"), content("1"), content("1"),
			},
			map[string]outputs.State{
				"a": outputs.Produced, "b": outputs.Produced, "c": outputs.Produced, "d": outputs.Produced, "e": outputs.Produced,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _ := collectedFor(t, promising(c.wanted...), inputs, c.replies...)
				if diff := cmp.Diff(c.want, statesOf(e.Judged)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// contracted is a start with a contract.
func contracted(code, key string) Start {
	s := starting(code, key)
	s.Outputs, s.SentOutputs, s.SentTimeline = promising("a", "turn_1/files/b"), json.RawMessage(`["a","turn_1/files/b"]`), json.RawMessage(`{"turn_id":"turn_1"}`)
	return s
}

// eventsOf returns the events of a journal.
func eventsOf(t *testing.T, store continuation.Store, id string) []continuation.Event {
	t.Helper()
	events, err := store.Events(context.Background(), id, 0, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// nothingProduced checks the end of an execution that has produced nothing.
func nothingProduced(t *testing.T, o core.Outcome, report string) {
	t.Helper()
	want := map[string]outputs.State{"a": outputs.Missing, "turn_1/files/b": outputs.Missing}
	if diff := cmp.Diff(want, statesOf(o.Outputs)); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	if o.Report != report {
		t.Errorf("the report is\n%s\nwant\n%s", o.Report, report)
	}
}

const nothingThere = "Runtime error: execution_failed — Missing output files: turn_1/files/a, turn_1/files/b\n" +
	"File errors:\n- turn_1/files/a: file not produced\n- turn_1/files/b: file not produced"

// The contract is kept over pauses, and the judged outputs are in the journal before the end.
func TestContractInAJournal(t *testing.T) {
	o := stickyOptions(t, sandboxtest.New("home.2"), t.Output())
	synctest.Test(t, func(t *testing.T) {
		e := newTalker(t, o)
		defer closing(t, e)
		id, answer := converse(t, e, contracted("ask end", ""))
		if answer.State != core.Failed || answer.Reason != core.OutputsMissing || answer.Detail != "a, turn_1/files/b" {
			t.Errorf("got %+v, want that outputs are missing", answer)
		}
		nothingProduced(t, answer, nothingThere)
		events := eventsOf(t, o.Store, id)
		var started journal.Started
		if err := json.Unmarshal(events[0].Content, &started); err != nil || string(started.Outputs) != `["a","turn_1/files/b"]` ||
			string(started.Timeline) != `{"turn_id":"turn_1"}` {
			t.Errorf("the first event is %s (%v), want the members as they were sent", events[0].Content, err)
		}
		for i, want := range answer.Outputs {
			var judged struct {
				Type   string
				Output outputs.Judged
			}
			event := events[len(events)-3+i].Content
			if err := json.Unmarshal(event, &judged); err != nil || judged.Type != journal.TypeOutputJudged || judged.Output != want {
				t.Errorf("got event %s (%v), want %+v", event, err, want)
			}
		}
		var ended journal.Ended
		if err := json.Unmarshal(events[len(events)-1].Content, &ended); err != nil || ended.ExitCode == nil || *ended.ExitCode != 0 {
			t.Errorf("the last event is %s (%v), want one with exit code 0", events[len(events)-1].Content, err)
		}
	})
}

// All outputs of an execution that ends while it is paused are missing, since its sandbox is not asked.
func TestContractOfACancelledPause(t *testing.T) {
	o := stickyOptions(t, sandboxtest.New("home.2"), t.Output())
	synctest.Test(t, func(t *testing.T) {
		e := newTalker(t, o)
		defer closing(t, e)
		s, id := contracted("ask end", "k"), ""
		s.Began = func(execution string) { id = execution }
		paused := patient(t, func() (core.Outcome, error) { return e.Start(t.Context(), s) })
		if paused.Outputs != nil || paused.Report != "" {
			t.Errorf("a pause tells %+v, want nothing of outputs", paused)
		}
		record, err := o.Store.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := core.ContractOf(record)
		want := *s.Outputs
		for i := range want.Outputs {
			want.Outputs[i].Description = ""
		}
		if diff := cmp.Diff(want, kept); diff != "" || err != nil {
			t.Errorf("the record keeps (-want +got, %v):\n%s", err, diff)
		}
		if done, err := e.Cancel(t.Context(), Cancel{Principal: "ada", Execution: id}); err != nil || done != CancelDone {
			t.Fatalf("Cancel = %v, %v", done, err)
		}
		if record, err = o.Store.Get(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		answer, err := core.LastAnswer(record)
		if err != nil || answer.State != core.Cancelled || record.Outputs != nil {
			t.Errorf("the record keeps %+v, %v, want the answer, and no contract", answer, err)
		}
		want1 := "Runtime error: cancelled — Missing" + nothingThere[len("Runtime error: execution_failed — Missing"):]
		nothingProduced(t, answer, want1)
		if types := tell(t, o.Store, id).events; len(types) < 3 || types[len(types)-2] != journal.TypeOutputJudged {
			t.Errorf("the journal has %v, want the outputs before the end", types)
		}
	})
}
