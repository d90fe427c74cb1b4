package core

import (
	"encoding/json"
	"strings"
	"testing"

	"fermata/continuation"
	"fermata/engine/sandbox"
)

// TestEnvelopes takes the results of clients out of their envelopes, with approval and without.
func TestEnvelopes(t *testing.T) {
	const failure = `{"ok": false, "error": {"message": "none \"left\"", "code": "E7", "where": "stock", "managed": true}}`
	for _, c := range []struct {
		name   string
		result Result
		want   string
	}{
		{"a result", Result{Value: []byte(`{"ok": true, "error": null, "ret": {"a": 1.0}}`)}, `{"a": 1.0}`},
		{"no result", Result{Value: []byte(`{"ok":true}`)}, `null`},
		{"a failure", Result{Value: []byte(failure)}, `failed: "none \"left\"" {"code":"E7","where":"stock","managed":true}`},
		{"a failure without a word", Result{Value: []byte(`{"ok":false}`)}, `failed: "the tool reports a failure"`},
		{"no envelope", Result{Value: []byte(`{"Ok": false}`)}, `{"Ok": false}`},
		{"nothing", Result{}, ``},
		{"a tool that failed", Result{Value: []byte(failure), Failed: true, Message: []byte(`"no"`)}, `failed: "no"`},
	} {
		for _, stage := range []string{"", "asked"} {
			t.Run(c.name+" "+stage, func(t *testing.T) {
				call := continuation.Call{Number: 1, ID: "call_001", Tool: "buy", Stage: stage, Envelope: true}
				c.result.CallID, c.result.Given = "call_001", true
				s, err := SettlementOf([]continuation.Call{call}, []Result{c.result})
				if err != nil {
					t.Fatal(err)
				}
				if got := spell(s.Results[0]); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
				call.Envelope = false
				plain, err := SettlementOf([]continuation.Call{call}, []Result{c.result})
				if err != nil || string(plain.Results[0].Value) != string(c.result.forAll()) || plain.Results[0].About != nil {
					t.Errorf("without an envelope: got %s, %v", plain.Results[0].Value, err)
				}
			})
		}
	}
}

// TestHandings finds the results that hand files over, and what a server that has died has noted of them.
func TestHandings(t *testing.T) {
	result := Result{CallID: "call_001", Value: []byte(`{"ok": true, "ret": {"artifact": {"content": "x"}}}`)}
	for name, c := range map[string]struct {
		call  continuation.Call
		noted bool
	}{
		"for the first time": {continuation.Call{}, false},
		"again":              {continuation.Call{Answered: true, Stage: "handed"}, false},
		"again, and noted":   {continuation.Call{Answered: true}, true},
	} {
		c.call.Number, c.call.ID, c.call.Envelope, c.call.Path = 1, "call_001", true, "a.txt"
		s, err := SettlementOf([]continuation.Call{c.call}, []Result{result})
		if err != nil || len(s.Handed) != 1 || s.Handed[0].Noted != c.noted || s.Handed[0].Files[0].Path != "a.txt" {
			t.Errorf("%s: got %+v, %v", name, s.Handed, err)
			continue
		}
		if got, want := spell(s.Results[0]), `{"artifact":{"path":"a.txt"}}`; got != want {
			t.Errorf("%s: the program gets %s, want %s", name, got, want)
		}
		if c.call.Answered {
			continue // The round is claimed already.
		}
		if after, err := s.after([]continuation.Call{c.call}); err != nil || StateOf(after[0]) != CallHanded {
			t.Errorf("%s: the record has %+v, %v", name, after, err)
		}
	}
}

// spell returns a result as text.
func spell(r sandbox.Result) string {
	text := string(r.Value)
	if r.Failed {
		text = "failed: " + text
	}
	return strings.TrimSpace(text + " " + string(r.About))
}

// forAll returns what a program gets whose tool has no envelopes.
func (r Result) forAll() json.RawMessage {
	if r.Failed {
		return r.Message
	}
	return r.Value
}
