package timeline_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"fermata/engine/outputs"
	"fermata/engine/timeline"
)

func TestParseNames(t *testing.T) {
	t.Parallel()
	python, bash := timeline.Usual(false), timeline.Usual(true)
	all := timeline.Names{Turn: "turn_7", Call: "toolu_01.a-b", Tool: "x.y", Notes: "So:\nhä", Include: true, Log: true, NoBase64: true}
	for _, test := range []struct {
		name, sent string
		bash       bool
		want       timeline.Names
	}{
		{"nothing", ``, false, python},
		{"null", ` null `, false, python},
		{"an empty object", `{}`, false, python},
		{"a shell script", `{}`, true, bash},
		{"all members", `{"turn_id":"turn_7","tool_call_id":"toolu_01.a-b","tool_id":"x.y","notes":"So:\nh\u00e4","include":true,"log":true,"base64":false}`, false, all},
		{"members that are null", `{"turn_id":null,"tool_call_id":null,"tool_id":null,"notes":null,"include":null,"log":null,"base64":null}`, false, python},
		{"a member of a later version", `{"colour":"red"}`, false, python},
		{"the last of two equal names", `{"log":false,"log":true}`, false, timeline.Names{Turn: "turn_1", Call: "exec", Tool: python.Tool, Log: true}},
		{"half a surrogate pair", `{"notes":"\ud800"}`, false, timeline.Names{Turn: "turn_1", Call: "exec", Tool: python.Tool, Notes: "\uFFFD"}},
		{"the longest id", `{"turn_id":"` + strings.Repeat("a", 128) + `"}`, false, timeline.Names{Turn: strings.Repeat("a", 128), Call: "exec", Tool: python.Tool}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := timeline.ParseNames(json.RawMessage(test.sent), test.bash)
			if err != nil || got != test.want {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

func TestParseNamesRefuses(t *testing.T) {
	t.Parallel()
	const (
		ids   = " must have 1 to 128 characters of A-Z, a-z, 0-9, _, . and -, and begin with a letter or a digit"
		inner = "timeline.tool_call_id must not end like a path of a block, or like the id of an inner call: .call, .notice, .result, .call_001"
	)
	for _, test := range []struct{ sent, want string }{
		{`[]`, "timeline must be an object"},
		{`"turn_1"`, "timeline must be an object"},
		{`{"turn_id":7}`, "timeline.turn_id must be a string"},
		{`{"turn_id":""}`, "timeline.turn_id" + ids},
		{`{"turn_id":"../x"}`, "timeline.turn_id" + ids},
		{`{"turn_id":"a/b"}`, "timeline.turn_id" + ids},
		{`{"turn_id":"a\n"}`, "timeline.turn_id" + ids},
		{`{"turn_id":"_a"}`, "timeline.turn_id" + ids},
		{`{"turn_id":"` + strings.Repeat("a", 129) + `"}`, "timeline.turn_id" + ids},
		{`{"tool_call_id":"ä"}`, "timeline.tool_call_id must have 1 to 255 printable ASCII characters without spaces"},
		{`{"tool_call_id":"a b"}`, "timeline.tool_call_id must have 1 to 255 printable ASCII characters without spaces"},
		{`{"tool_call_id":"a.call"}`, inner},
		{`{"tool_call_id":"a.notice"}`, inner},
		{`{"tool_call_id":"a.result"}`, inner},
		{`{"tool_call_id":"a.call_001"}`, inner},
		{`{"tool_id":"a b"}`, "timeline.tool_id" + ids},
		{`{"notes":["x"]}`, "timeline.notes must be a string"},
		{`{"notes":"` + strings.Repeat("x", timeline.MaxNotes+1) + `"}`, "timeline.notes must have at most 16384 bytes"},
		{`{"include":"yes"}`, "timeline.include must be true or false"},
		{`{"log":1}`, "timeline.log must be true or false"},
		{`{"base64":"false"}`, "timeline.base64 must be true or false"},
	} {
		t.Run(test.sent[:min(len(test.sent), 40)], func(t *testing.T) {
			t.Parallel()
			_, err := timeline.ParseNames(json.RawMessage(test.sent), false)
			mistake, ok := errors.AsType[*outputs.MistakeError](err)
			if !ok || mistake.Text != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
