package sandbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func exitPayload(head, output string) []byte {
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(len(head))), head...), output...)
}

func TestReadExit(t *testing.T) {
	code := -9
	x, err := readExit(exitPayload(
		`{"code":-9,"oom":true,"broken":true,"files":true,"stdout":3,"stderr":2,"over":"stderr","line":7,"new":1}`, "outer"))
	want := Exit{Code: &code, OutOfMemory: true, Broken: true, Over: "stderr", Files: true, Line: 7, Stdout: []byte("out"), Stderr: []byte("er")}
	if diff := cmp.Diff(want, x); diff != "" || err != nil {
		t.Errorf("readExit = %v, and (-want +got):\n%s", err, diff)
	}
	for _, payload := range [][]byte{
		nil,
		[]byte("\x00\x00\x00"),
		[]byte("\x00\x00\x00\x03{}"),
		[]byte("\xff\xff\xff\xff{}"),
		exitPayload(`{`, ""),
		exitPayload(`[]`, ""),
		exitPayload(`{"code":"1"}`, ""),
		exitPayload(`{"stdout":1}`, ""),
		exitPayload(`{"stdout":0}`, "a"),
		exitPayload(`{"stdout":-1,"stderr":2}`, "a"),
		exitPayload(`{"stdout":2,"stderr":-1}`, "a"),
		exitPayload(`{"stdout":2,"stderr":9223372036854775807}`, "a"),
		exitPayload(`{"stdout":9223372036854775807,"stderr":9223372036854775807}`, ""),
	} {
		if x, err := readExit(payload); err == nil {
			t.Errorf("readExit(%q) = %+v, want an error", payload, x)
		}
	}
}

// A line that no program can have is forged, and is no reason to doubt the rest.
func TestLineOfAnExit(t *testing.T) {
	for value, want := range map[string]int{`3`: 3, `0`: 0, `-1`: 0, `99999999`: 0, `"3"`: 0, `null`: 0, `1.5`: 0} {
		if x, err := readExit(exitPayload(`{"line":`+value+`}`, "")); err != nil || x.Line != want {
			t.Errorf("line %s: got %d, %v, want %d", value, x.Line, err, want)
		}
	}
}

func TestReadReport(t *testing.T) {
	got, err := readReport([]byte(`{"exit":3,"error":"E","memory":true,"value":{"v":1.0}}`))
	if diff := cmp.Diff(Report{3, "E", true, []byte(`{"v":1.0}`)}, got); diff != "" || err != nil {
		t.Errorf("readReport = %v, and (-want +got):\n%s", err, diff)
	}
	for _, payload := range []string{"", "x", "[]", `{"exit":"3"}`, `{"exit":1.5}`, `{"error":1}`} {
		if got, err := readReport([]byte(payload)); err == nil {
			t.Errorf("readReport(%q) = %+v, want an error", payload, got)
		}
	}
}

// A line that no program can have is forged, and is no reason to refuse the call.
func TestLinesOfCalls(t *testing.T) {
	for value, want := range map[string]int{
		`7`: 7, `1048576`: 1 << 20, `1048577`: 0, `0`: 0, `-1`: 0, `1.5`: 0, `1e3`: 0, `"7"`: 0, `null`: 0, `[7]`: 0, `{}`: 0,
		`99999999999999999999`: 0,
	} {
		n := 0
		for c, err := range CallsOf([]byte(`[{"n":1,"tool":"t","line":` + value + `,"input":{}},{"n":2,"tool":"t","input":{}}]`)).All() {
			if n++; err != nil || c.Number != n || c.Tool != "t" || c.Line != map[int]int{1: want}[n] {
				t.Errorf("line %s: call %d is %+v, %v, want line %d", value, n, c, err, want)
			}
		}
		if n != 2 {
			t.Errorf("line %s: %d calls, want 2", value, n)
		}
	}
}

func TestEncodeResults(t *testing.T) {
	for _, c := range []struct {
		name    string
		results []Result
		want    string
	}{
		{"none", nil, `[]`},
		{"a value as it was sent", []Result{{Number: 9, Value: json.RawMessage(`{"a": 1.0, "a":"\ud800"}`)}}, `[{"n":9,"value":{"a": 1.0, "a":"\ud800"}}]`},
		{"no value", []Result{{Number: 7}}, `[{"n":7,"value":null}]`},
		{"a failure", []Result{{Number: 7, Failed: true, Value: json.RawMessage(`"no"`)}}, `[{"n":7,"error":"no"}]`},
		{
			"a failure with attributes",
			[]Result{{Number: 7, Failed: true, Value: json.RawMessage(`"no"`), About: json.RawMessage(`{"code":"x"}`)}},
			`[{"n":7,"error":"no","about":{"code":"x"}}]`,
		},
		{"a failure without a text", []Result{{Number: 7, Failed: true}}, `[{"n":7,"error":null}]`},
		{
			"in their order",
			[]Result{{Number: 8, Value: json.RawMessage(`1`)}, {Number: 7, Value: json.RawMessage(`2`)}},
			`[{"n":8,"value":1},{"n":7,"value":2}]`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(bytes.Join(encodeResults(c.results), nil)); got != c.want {
				t.Errorf("encodeResults = %s, want %s", got, c.want)
			}
		})
	}
}

func FuzzReadExit(f *testing.F) {
	f.Add(exitPayload(`{"code":0,"stdout":1,"stderr":1}`, "ab"))
	f.Add(exitPayload(`{"over":"stdout","stdout":2,"stderr":0}`, "ab"))
	f.Add([]byte("\xff\xff\xff\xff{}"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		x, err := readExit(payload)
		if err == nil && !bytes.HasSuffix(payload, slices.Concat(x.Stdout, x.Stderr)) {
			t.Errorf("readExit = %+v", x)
		}
	})
}
