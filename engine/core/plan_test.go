package core

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"fermata/continuation"
	"fermata/engine/sandbox"
)

// accepted returns how an execution with this record accepts the calls in a text. Its program may call nothing but
// plain tools of its client.
func accepted(record continuation.Record, text string) (Ending, error) {
	return acceptedOf(10, record, sandbox.CallsOf([]byte(text)))
}

// acceptedOf does the same for an execution that may make so many calls.
func acceptedOf(maxCalls int, record continuation.Record, calls *sandbox.Calls) (Ending, error) {
	d := &Dispatcher{MaxCalls: maxCalls, Work: idle{}}
	p, e, err := d.Plan(calls, record, time.Now())
	if err != nil || e.State != "" {
		return e, err
	}
	return d.Pause(p, record, 20), nil
}

// idle is the work of a server that runs nothing.
type idle struct{}

func (idle) Has(int) bool           { return false }
func (idle) Size() int              { return 0 }
func (idle) Lanes() map[string]bool { return map[string]bool{} }

func TestAccept(t *testing.T) {
	record := continuation.Record{
		Tools: []string{"get-weather", "名"}, Round: 2, Issued: 4,
		Pending: []continuation.Call{{Number: 3, ID: "call_003"}, {Number: 4, ID: "call_004"}},
	}
	for _, c := range []struct {
		name, payload string
		want          []Call
		pending       []continuation.Call
		issued        int
	}{
		{
			"a new call", `[{"n":5,"tool":"get-weather","input":{"city":"x"}}]`,
			[]Call{{ID: "call_005", Name: "get-weather", Input: json.RawMessage(`{"city":"x"}`)}},
			[]continuation.Call{{Number: 5, ID: "call_005"}},
			1,
		},
		{
			"a call that is asked again keeps its id",
			`[{"n":4,"tool":"名","input":{}},{"n":5,"tool":"名","input":{}}]`,
			[]Call{{ID: "call_004", Name: "名", Input: json.RawMessage(`{}`)}, {ID: "call_005", Name: "名", Input: json.RawMessage(`{}`)}},
			[]continuation.Call{{Number: 4, ID: "call_004"}, {Number: 5, ID: "call_005"}},
			1,
		},
		{
			"numbers are the sandbox's own", `[{"n":-7,"tool":"名","input":{}},{"n":99,"tool":"名","input":{}}]`,
			[]Call{{ID: "call_005", Name: "名", Input: json.RawMessage(`{}`)}, {ID: "call_006", Name: "名", Input: json.RawMessage(`{}`)}},
			[]continuation.Call{{Number: -7, ID: "call_005"}, {Number: 99, ID: "call_006"}},
			2,
		},
		{
			"the input is passed on as it is", `[{"n":5,"tool":"名","input":{"b":1.0,"a":1e400,"c":"\ud83d\ude00","n":12345678901234567890}}]`,
			[]Call{{ID: "call_005", Name: "名", Input: json.RawMessage(`{"b":1.0,"a":1e400,"c":"\ud83d\ude00","n":12345678901234567890}`)}},
			[]continuation.Call{{Number: 5, ID: "call_005"}},
			1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := accepted(record, c.payload)
			if err != nil || got.State != Paused {
				t.Fatalf("accept = %q, %v, want paused", got.State, err)
			}
			if !slices.EqualFunc(got.Calls, c.want, sameCall) {
				t.Errorf("calls = %s, want %s", got.Calls, c.want)
			}
			if !slices.EqualFunc(got.Pending, c.pending, samePending) || len(got.Issued) != c.issued {
				t.Errorf("pending = %v, %d issued, want %v, %d", got.Pending, len(got.Issued), c.pending, c.issued)
			}
		})
	}
}

// samePending reports whether two pending calls are the same, whenever they were made.
func samePending(a, b continuation.Call) bool {
	return a.Number == b.Number && a.ID == b.ID && a.Answered == b.Answered
}

func sameCall(a, b Call) bool {
	return a.ID == b.ID && a.Name == b.Name && bytes.Equal(a.Input, b.Input)
}

func TestAcceptMoreThanThreeDigits(t *testing.T) {
	record := continuation.Record{Tools: []string{"t"}, Issued: 998}
	got, err := acceptedOf(2000, record, sandbox.CallsOf([]byte(`[{"n":1,"tool":"t","input":{}},{"n":2,"tool":"t","input":{}}]`)))
	if err != nil || len(got.Calls) != 2 || got.Calls[0].ID != "call_999" || got.Calls[1].ID != "call_1000" {
		t.Errorf("accept = %v, %v, want call_999 and call_1000", got.Calls, err)
	}
}

// Calls that no worker of ours sends are an error.
func TestAcceptMalformed(t *testing.T) {
	for _, payload := range []string{
		"", "x", "null", "[]", "{}", "[1]",
		`[{"n":1,"tool":"t"}]`,
		`[{"n":1,"tool":"t","input":null}]`,
		`[{"n":1,"tool":"t","input":[]}]`,
		`[{"n":1,"tool":"t","input":"{}"}]`,
		`[{"n":1,"tool":"t","input":{]}]`,
		`[{"n":1,"tool":"t","input":{"a":NaN}}]`,
		`[{"n":1.5,"tool":"t","input":{}}]`,
		`[{"n":"1","tool":"t","input":{}}]`,
		`[{"n":99999999999999999999,"tool":"t","input":{}}]`,
		`[{"n":1,"tool":5,"input":{}}]`,
		`[{"n":1,"tool":"t","input":{}},{"n":1,"tool":"t","input":{}}]`,
		`[{"n":1,"tool":"t","input":{}}] ` + "x",
		`[{"n":1,"tool":"t","input":{}}`,
		`[{"n":1,"tool":"t","input":` + strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000) + "}]",
	} {
		got, err := accepted(continuation.Record{Tools: []string{"t"}}, payload)
		if err == nil {
			t.Errorf("accept(%.60q) = %q %v, want an error", payload, got.State, got.Calls)
		}
	}
}

// Calls that any program can make end it in a way of their own, not with an error.
func TestAcceptRefused(t *testing.T) {
	one := `[{"n":1,"tool":"t","input":{}}]`
	for _, c := range []struct {
		name, payload string
		record        continuation.Record
		want          Ending
	}{
		{
			"a tool that was not granted", `[{"n":1,"tool":"rm","input":{}}]`,
			continuation.Record{Tools: []string{"t"}},
			Fail(UngrantedTool, "rm", 0),
		},
		{"no tools at all", one, continuation.Record{}, Fail(UngrantedTool, "t", 0)},
		{"no name", `[{"n":1,"input":{}}]`, continuation.Record{Tools: []string{"t"}}, Fail(UngrantedTool, "", 0)},
		{
			"the case of letters counts", `[{"n":1,"tool":"T","input":{}}]`,
			continuation.Record{Tools: []string{"t"}},
			Fail(UngrantedTool, "T", 0),
		},
		{
			"one bad call among good ones", `[{"n":1,"tool":"t","input":{}},{"n":2,"tool":"rm","input":{}}]`,
			continuation.Record{Tools: []string{"t"}},
			Fail(UngrantedTool, "rm", 0),
		},
		{
			"the last round is over", one,
			continuation.Record{Tools: []string{"t"}, Round: 20},
			Fail(TooManyRounds, "", 20),
		},
		{
			"one call too many", one,
			continuation.Record{Tools: []string{"t"}, Issued: 10},
			Fail(TooManyCalls, "", 10),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := accepted(c.record, c.payload)
			if err != nil || got.State != c.want.State || got.Reason != c.want.Reason ||
				got.Detail != c.want.Detail || got.Code != c.want.Code {
				t.Errorf("accept = %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

// Calls that only a program which replaces the runner can send end it, with a text.
func TestAcceptForged(t *testing.T) {
	input := func(size int) string { return `{"x":"` + strings.Repeat("x", size-len(`{"x":""}`)) + `"}` }
	deep := func(depth int) string {
		return `{"x":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
	}
	calls := func(inputs ...string) string {
		var b strings.Builder
		for i, in := range inputs {
			fmt.Fprintf(&b, `,{"n":%d,"tool":"t","input":%s}`, i, in)
		}
		return "[" + b.String()[1:] + "]"
	}
	three := input(maxInput)
	rest := sandbox.MaxInputs - 3*maxInput
	for _, c := range []struct {
		name   string
		inputs []string
		want   string
	}{
		{"the largest", []string{three, three, three, input(rest)}, ""},
		{"too large", []string{input(maxInput + 1)}, "it sent a tool input of more than 5000000 bytes"},
		{"white space counts", []string{input(maxInput-1) + "  "}, ""},
		{"white space within counts", []string{"{" + strings.Repeat(" ", maxInput-1) + "}"}, "it sent a tool input of more than 5000000 bytes"},
		{"too much in all", []string{three, three, three, input(rest + 1)}, "it sent tool inputs of more than 16777216 bytes at once"},
		{"deep", []string{deep(MaxDepth)}, ""},
		{"too deep", []string{`{}`, deep(MaxDepth + 1)}, "it sent a tool input that is nested deeper than 500 levels"},
		{"a name twice", []string{`{"a":1,"a":2}`}, "it sent a tool input with an object that has a name twice"},
		{"a name twice within", []string{`{"b":[{"a":1},{"a":1,"\u0061":2}]}`}, "it sent a tool input with an object that has a name twice"},
		{"one name in two objects", []string{`{"a":{"a":[{"a":1},{"a":1}]}}`}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := accepted(continuation.Record{Tools: []string{"t"}}, calls(c.inputs...))
			if err != nil || got.Detail != c.want || (c.want == "") != (got.State == Paused) || c.want != "" && got.Reason != ProtocolBroken {
				t.Errorf("accept = %q %q %q, %v, want the detail %q", got.State, got.Reason, got.Detail, err, c.want)
			}
		})
	}
}

// Every reader of JSON accepts the inputs that the client gets.
func TestAcceptReplacesWhatIsNoText(t *testing.T) {
	for input, want := range map[string]string{
		`{"a":"\udfff"}`:              "{\"a\":\"\uFFFD\"}",
		`{"\ud800":"x\uD800y"}`:       "{\"\uFFFD\":\"x\uFFFDy\"}",
		"{\"a\":\"\xff\"}":            "{\"a\":\"\uFFFD\"}",
		`{"a":"\ud83d\ude00"}`:        `{"a":"\ud83d\ude00"}`,
		`{"a":"\\ud800"}`:             `{"a":"\\ud800"}`,
		`{ "a" : [ 1.0 , "\u00e9" ]}`: `{"a":[1.0,"\u00e9"]}`,
	} {
		got, err := accepted(continuation.Record{Tools: []string{"t"}}, `[{"n":1,"tool":"t","input":`+input+`}]`)
		if err != nil || len(got.Calls) != 1 || string(got.Calls[0].Input) != want {
			t.Errorf("accept of the input %s = %s, %v, want %s", input, got.Calls, err, want)
		}
	}
}

// However many calls a program forges, those beyond the limit take no memory.
func TestAcceptStopsAtTheLimit(t *testing.T) {
	var b strings.Builder
	for n := range 500_000 {
		fmt.Fprintf(&b, `,{"n":%d,"tool":"t","input":{}}`, n)
	}
	calls := sandbox.CallsOf([]byte("[" + b.String()[1:] + "]"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := acceptedOf(10, continuation.Record{Tools: []string{"t"}}, calls)
	runtime.ReadMemStats(&after)
	if err != nil || got.Reason != TooManyCalls {
		t.Fatalf("accept = %q %q, %v, want too many calls", got.State, got.Reason, err)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 {
		t.Errorf("accept took %d bytes, want about as many as for ten calls", taken)
	}
}

func TestAcceptUpToTheLimits(t *testing.T) {
	record := continuation.Record{
		Tools: []string{"t"}, Round: 19, Issued: 9,
		Pending: []continuation.Call{{Number: 1, ID: "call_009"}},
	}
	got, err := accepted(record, `[{"n":1,"tool":"t","input":{}},{"n":2,"tool":"t","input":{}}]`)
	if err != nil || got.State != Paused || len(got.Issued) != 1 {
		t.Errorf("accept = %q, %d issued, %v, want paused with 1: the call asked again is not new", got.State, len(got.Issued), err)
	}
}

func TestExited(t *testing.T) {
	code := func(n int) *int { return &n }
	exitedWith := func(n int) Ending { return Fail(ExitedCode, "", n) }
	report := func(r sandbox.Report) *sandbox.Report { return &r }
	for _, c := range []struct {
		name string
		exit sandbox.Exit
		want Ending
	}{
		{"done", sandbox.Exit{Report: &sandbox.Report{}}, Ending{State: Completed}},
		{"returned", sandbox.Exit{Report: report(sandbox.Report{Value: []byte(`[1]`)})}, Ending{State: Completed, Value: []byte(`[1]`)}},
		{"failed with a value", sandbox.Exit{Report: report(sandbox.Report{Exit: 3, Value: []byte(`[1]`)})}, exitedWith(3)},
		{"raised", sandbox.Exit{Report: report(sandbox.Report{Exit: 1, Error: "E: x"})}, Fail(RaisedError, "E: x", 0)},
		{"raised what is not UTF-8", sandbox.Exit{Report: report(sandbox.Report{Exit: 1, Error: "E: \xff"})}, Fail(RaisedError, "E: \uFFFD", 0)},
		{"exited", sandbox.Exit{Report: report(sandbox.Report{Exit: 3})}, exitedWith(3)},
		{
			"MemoryError",
			sandbox.Exit{Report: report(sandbox.Report{Exit: 1, Error: "MemoryError", OutOfMemory: true})},
			Fail(OutOfMemory, "", 0),
		},
		{"a child died of memory, the program went on", sandbox.Exit{OutOfMemory: true, Report: &sandbox.Report{}}, Ending{State: Completed}},
		{"killed for memory", sandbox.Exit{Code: code(-9), OutOfMemory: true}, Fail(OutOfMemory, "", 0)},
		{"killed", sandbox.Exit{Code: code(-9)}, exitedWith(-9)},
		{"os._exit(7)", sandbox.Exit{Code: code(7)}, exitedWith(7)},
		{"os._exit(0)", sandbox.Exit{Code: code(0)}, Ending{State: Completed}},
		{"stdout flood", sandbox.Exit{Over: "stdout"}, Fail(StdoutFlood, "", 0)},
		{"stderr flood", sandbox.Exit{Over: "stderr"}, Fail(StderrFlood, "", 0)},
		{"a flood counts for more than a good end", sandbox.Exit{Over: "stdout", Report: &sandbox.Report{}}, Fail(StdoutFlood, "", 0)},
		{"a flood counts for more than memory", sandbox.Exit{Over: "stdout", OutOfMemory: true, Code: code(-9)}, Fail(StdoutFlood, "", 0)},
		{"broken", sandbox.Exit{Broken: true}, Fail(ProtocolBroken, "", 0)},
		{"no word at all", sandbox.Exit{}, Fail(SandboxLost, "", 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.exit.Stdout, c.exit.Stderr = []byte("o\xff"), []byte("e")
			got := Exited(c.exit)
			if string(got.Value) != string(c.want.Value) {
				t.Errorf("value = %q, want %q", got.Value, c.want.Value)
			}
			if got.State != c.want.State || got.Reason != c.want.Reason || got.Detail != c.want.Detail || got.Code != c.want.Code {
				t.Errorf("exited = %+v, want %+v", got, c.want)
			}
			o := got.Outcome("s")
			if o.Stdout != "o\uFFFD" || o.Stderr != "e" {
				t.Errorf("output = %q, %q, want %q, %q", o.Stdout, o.Stderr, "o\uFFFD", "e")
			}
			if string(o.Value) != string(c.want.Value) {
				t.Errorf("value of the outcome = %q, want %q", o.Value, c.want.Value)
			}
		})
	}
}

func TestMatchResults(t *testing.T) {
	pending := []continuation.Call{{Number: 7, ID: "call_001"}, {Number: 9, ID: "call_002"}, {Number: 8, ID: "call_003"}}
	one, two, no := json.RawMessage(`1`), json.RawMessage(`2`), json.RawMessage(`"no"`)
	for _, c := range []struct {
		name    string
		results []Result
		want    []sandbox.Result
	}{
		{"none", nil, []sandbox.Result{}},
		{"no value", []Result{{CallID: "call_001"}}, []sandbox.Result{{Number: 7}}},
		{"a failure", []Result{{CallID: "call_001", Failed: true, Message: no}}, []sandbox.Result{{Number: 7, Value: no, Failed: true}}},
		{"a failure whose value does not count", []Result{{CallID: "call_001", Failed: true, Value: one}}, []sandbox.Result{{Number: 7, Failed: true}}},
		{
			"in the order of the results",
			[]Result{{CallID: "call_003", Value: one}, {CallID: "call_001", Value: two}},
			[]sandbox.Result{{Number: 8, Value: one}, {Number: 7, Value: two}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := SettlementOf(pending, c.results)
			if diff := cmp.Diff(c.want, got.Results); diff != "" || err != nil {
				t.Errorf("SettlementOf = %v, and (-want +got):\n%s", err, diff)
			}
		})
	}
	for _, ids := range [][]string{{"call_004"}, {""}, {"call_001", "call_001"}, {"call_002", "call_009"}, {"CALL_001"}} {
		var results []Result
		for _, id := range ids {
			results = append(results, Result{CallID: id})
		}
		_, err := SettlementOf(pending, results)
		var wrong *ResultError
		if !errors.As(err, &wrong) || wrong.CallID != ids[len(ids)-1] {
			t.Errorf("SettlementOf of %q = %v, want a ResultError of the last", ids, err)
		}
	}
}

func FuzzCalls(f *testing.F) {
	f.Add([]byte(`[{"n":1,"tool":"t","input":{}}]`))
	f.Add([]byte(`[{"n":2,"tool":"t","input":{"a":[1.0,"\ud800"]}},{"n":3,"tool":"u","input":{}}]`))
	f.Add([]byte(`[{"n":1,"tool":"t","input":{"a":1,"a":2}}] `))
	f.Add([]byte(`[{"n":1,"tool":"t","input":{"a":"\ud83d\ude00\\\udfff"}}]`))
	f.Add([]byte("[{\"n\":1,\"tool\":\"t\",\"input\":{\"\xff\":1}}]"))
	record := continuation.Record{Tools: []string{"t"}, Issued: 2, Pending: []continuation.Call{{Number: 2, ID: "call_002"}}}
	f.Fuzz(func(t *testing.T, payload []byte) {
		e, err := accepted(record, string(payload))
		if err != nil || e.State == Failed {
			return
		}
		if e.State != Paused || len(e.Calls) == 0 || len(e.Calls) != len(e.Pending) {
			t.Fatalf("accept = %q with %d calls, %d pending", e.State, len(e.Calls), len(e.Pending))
		}
		ids := map[string]bool{}
		for _, c := range e.Calls {
			if !utf8.Valid(c.Input) || !jsontext.Value(c.Input).IsValid() {
				t.Errorf("the input %q is not what all readers take", c.Input)
			}
			if c.Name != "t" || ids[c.ID] {
				t.Errorf("call %q of %q, want one id each and a tool that was granted", c.ID, c.Name)
			}
			ids[c.ID] = true
		}
		// The record and the answer hold the calls as JSON.
		if _, err := json.Marshal(Outcome{State: Paused, Calls: e.Calls}); err != nil {
			t.Errorf("the calls cannot be encoded: %v", err)
		}
	})
}
