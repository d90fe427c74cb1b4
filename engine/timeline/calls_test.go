package timeline_test

import (
	"encoding/json"
	"strings"
	"testing"

	"fermata/engine/timeline"
)

// metaOfValue is the beginning of the meta block of the value of the first inner call.
const metaOfValue = `react.tool.result tc:turn_1.abc.call_001.result {"artifact_path":"tc:turn_1.abc.call_001.result","mime":"application/json",` +
	`"kind":"file","visibility":"internal","tool_call_id":"abc.call_001",`

// TestWebTools has the examples of the document "Tool Call Blocks" in which tools return values.
func TestWebTools(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ tool, input, output, call, meta, content string }{
		{
			"web_tools.web_search", `{"queries":["best restaurants wuppertal"],"n":5}`, `[{"sid":1,"title":"\u003ca\u003e"},{"sid":2,"n":1.0}]`,
			`{"type":"react.tool.call","path":"tc:turn_1.s1.call_001.call","text":"{\"tool_id\":\"web_tools.web_search\",\"tool_call_id\":\"s1.call_001\",\"params\":{\"queries\":[\"best restaurants wuppertal\"],\"n\":5}}"}`,
			`{"type":"react.tool.result","path":"tc:turn_1.s1.call_001.result","text":"{\"artifact_path\":\"tc:turn_1.s1.call_001.result\",\"mime\":\"application/json\",\"kind\":\"file\",\"visibility\":\"internal\"}"}`,
			`{"type":"react.tool.result","path":"tc:turn_1.s1.call_001.result","mime":"application/json","text":"[{\"sid\":1,\"title\":\"<a>\"},{\"sid\":2,\"n\":1.0}]"}`,
		},
		{
			"web_tools.web_fetch", `{"urls":["https://example.com"]}`, `{"https://example.com": {"content": "...", "title": "Example"}}`,
			`{"type":"react.tool.call","path":"tc:turn_1.s1.call_001.call","text":"{\"tool_id\":\"web_tools.web_fetch\",\"params\":{\"urls\":[\"https://example.com\"]}}"}`,
			`{"type":"react.tool.result","path":"tc:turn_1.s1.call_001.result","text":"{\"artifact_path\":\"tc:turn_1.s1.call_001.result\",\"mime\":\"application/json\",\"kind\":\"file\",\"visibility\":\"internal\"}"}`,
			`{"type":"react.tool.result","path":"tc:turn_1.s1.call_001.result","mime":"application/json","text":"{\"https://example.com\":{\"content\":\"...\",\"title\":\"Example\"}}"}`,
		},
	} {
		h := begun("").called("call_001", test.tool, test.input).returned("call_001", test.output).completed()
		h.names.Call = "s1"
		made := h.build(t, timeline.Options{})
		if len(made.Blocks) != 6 {
			t.Fatalf("got %d blocks: %s", len(made.Blocks), lines(made))
		}
		for i, example := range []string{test.call, test.meta, test.content} {
			shaped(t, made.Blocks[2+i], example)
		}
		if made.Blocks[3].MIME != "" || made.Blocks[3].Call != "s1.call_001" {
			t.Errorf("got the meta block %+v", made.Blocks[3])
		}
	}
}

// TestCalls has calls that overlap and end in different ways. Their blocks are in the order in which the
// program has made the calls.
func TestCalls(t *testing.T) {
	t.Parallel()
	made := begun("").
		called("call_002", "b", `{}`).called("call_001", "a", `{"x": 1.50}`).called("call_1000", "d", `{}`).
		add("approval.requested", `"call":"call_003","record":"ptc:1","tool":"c","toolset":"","runner":"server","input":{"y":2}`).
		add("approval.given", `"call":"call_003","by":"me"`).called("call_003", "c", `{"y":2}`).
		add("call.failed", `"call":"call_003","record":"ptc:1","error":"no way","took_ms":1`).
		add("call.failed", `"call":"call_002","record":"ptc:1","error":"none left","envelope":true,"code":"E7","where":"stock","took_ms":1`).
		returned("call_001", `"text"`).completed().build(t, timeline.Options{})
	call := func(id, tool, params, second string) string {
		return `react.tool.call tc:turn_1.abc.` + id + `.call {"tool_id":"` + tool + `","tool_call_id":"abc.` + id + `","params":` + params + `,"ts":"2026-11-27T05:00:` + second + `.000Z"}`
	}
	failed := func(id, failure string) string {
		return `react.tool.result tc:turn_1.abc.` + id + `.result {"artifact_path":"tc:turn_1.abc.` + id + `.result","mime":"application/json","kind":"file","visibility":"internal","tool_call_id":"abc.` + id + `","error":` + failure + `}`
	}
	same(t, lines(made),
		startCode, startCall,
		call("call_001", "a", `{"x":1.50}`, "03"), metaOfValue+`"tokens":2,"tokens_estimated":true}`,
		`react.tool.result tc:turn_1.abc.call_001.result application/json "text"`,
		call("call_002", "b", `{}`, "02"),
		`react.notice tc:turn_1.abc.call_002.notice {"code":"tool_result_error","message":"none left","error_code":"E7","where":"stock"}`,
		failed("call_002", `{"code":"E7","message":"none left","where":"stock"}`),
		call("call_003", "c", `{"y":2}`, "05"),
		`react.notice tc:turn_1.abc.call_003.notice {"code":"tool_call_error","message":"no way"}`,
		failed("call_003", `{"code":"tool_call_error","message":"no way"}`),
		call("call_1000", "d", `{}`, "04"),
		"react.tool.result tc:turn_1.abc.result text/plain ",
	)
	same(t, parts(made),
		"[TOOL RESULT abc.call_001].summary a\nstatus: ok\n- tc:turn_1.abc.call_001.result",
		"[TOOL RESULT abc.call_001].result a\ntc:turn_1.abc.call_001.result\n\"text\"",
		"[TOOL RESULT abc.call_002].summary b\nstatus: error: E7: none left",
		"[TOOL RESULT abc.call_003].summary c\nstatus: error: tool_call_error: no way",
		"[TOOL RESULT abc].summary exec_tools.execute_code_python\nstatus: ok\n- tc:turn_1.abc.result",
		"[TOOL RESULT abc].result exec_tools.execute_code_python\ntc:turn_1.abc.result\n",
	)
}

// Long parameters are shortened at every depth, and numbers keep their spelling.
func TestLongParameters(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("<é>", 40)
	made := begun("").called("call_001", "a", `{"q": ["`+long+`", 12345678901234567890, 1e2], "`+long+`": "short \ud800"}`).build(t, timeline.Options{})
	var text struct {
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal([]byte(*made.Blocks[2].Text), &text); err != nil {
		t.Fatal(err)
	}
	head := strings.Repeat("<é>", 33) + "<...[truncated]"
	if want := `{"q":["` + head + `",12345678901234567890,1e2],"` + head + `":"short ` + "\uFFFD" + `"}`; string(text.Params) != want {
		t.Errorf("got  %s\nwant %s", text.Params, want)
	}
}

// A value that the journal has truncated is marked as truncated.
func TestCutJournal(t *testing.T) {
	t.Parallel()
	const cut = `{"truncated":true,"bytes":99999,"head":"[1, 2"}`
	made := begun("").called("call_001", "a", cut).returned("call_001", cut).build(t, timeline.Options{})
	got := lines(made)
	if !strings.Contains(got[2], `"params":"[1, 2...[truncated]"`) {
		t.Errorf("got %s", got[2])
	}
	if got[4] != "react.tool.result tc:turn_1.abc.call_001.result text/plain [1, 2...[truncated]" {
		t.Errorf("got %s", got[4])
	}
}

// TestCutInputs has inputs of which the journal has the beginning: they are objects all the same.
func TestCutInputs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`\u00e9`, 200)
	for head, want := range map[string]string{
		`{"q":"` + long:                      `{"q":"` + strings.Repeat("é", 100) + `...[truncated]"}`,
		`{"n":7,"q":"ab\ud83d`:               `{"n":7,"q":"ab...[truncated]"}`,
		`{"q":"` + long + `","n":[1,{"a":12`: `{"q":"` + strings.Repeat("é", 100) + `...[truncated]","n":[1,{"a":"...[truncated]"}]}`,
		`{"q":[1,2`:                          `{"q":[1]}`,
		`{"q":tr`:                            `{"q":"...[truncated]"}`,
		`{"q":1,"na`:                         `{"q":1}`,
		`{"q":`:                              `{"q":"...[truncated]"}`,
		`{`:                                  `{}`,
	} {
		quoted, err := json.Marshal(head)
		if err != nil {
			t.Fatal(err)
		}
		made := begun("").called("call_001", "a", `{"truncated":true,"bytes":99999,"head":`+string(quoted)+`}`).build(t, timeline.Options{})
		var text struct{ Params json.RawMessage }
		if err := json.Unmarshal([]byte(*made.Blocks[2].Text), &text); err != nil || string(text.Params) != want {
			t.Errorf("%s: got %s (%v), want %s", head, text.Params, err, want)
		}
	}
}

// TestManyLargeErrors keeps little of errors once there are 8 MiB of inner calls.
func TestManyLargeErrors(t *testing.T) {
	t.Parallel()
	h := begun("")
	large := strings.Repeat("x", 4<<20)
	for _, id := range []string{"call_001", "call_002", "call_003"} {
		h.called(id, "a", `{}`).add("call.failed", `"call":"`+id+`","record":"ptc:1","error":"`+large+`","took_ms":1`)
	}
	got := lines(h.build(t, timeline.Options{}))
	if len(got) != 2+3*3 || len(got[3]) < 4<<20 || !strings.Contains(got[2+3*2+2], `"message":"`+large[:256]+`...[truncated]"`) {
		t.Errorf("got %d blocks, and of the last error %.600s", len(got), got[len(got)-1])
	}
}

// TestManyLargeValues keeps 8 MiB of inner calls.
func TestManyLargeValues(t *testing.T) {
	t.Parallel()
	h := begun("")
	value := `"` + strings.Repeat("x", 1<<20) + `"`
	for _, id := range []string{"call_001", "call_002", "call_003", "call_004", "call_005", "call_006", "call_007", "call_008"} {
		h.called(id, "a", `{}`).returned(id, value)
	}
	h.called("call_009", "a", value)
	got := lines(h.build(t, timeline.Options{}))
	if len(got) != 2+3*7+2+1 || !strings.Contains(got[2+3*7+1], `"content_omitted":"timeline_full"`) {
		t.Errorf("got %d blocks: %.200s", len(got), got[2+3*7:])
	}
	if !strings.Contains(got[len(got)-1], `"params":"...[truncated]"`) {
		t.Errorf("got %.200s", got[len(got)-1])
	}
}

// What is left of a journal whose beginning was lost with the data of its store makes a timeline.
func TestLostBeginning(t *testing.T) {
	t.Parallel()
	made := begun("").returned("call_001", `1`).called("call_002", "b", `{}`).returned("call_002", `2`).completed().build(t, timeline.Options{})
	if len(made.Blocks) != 6 || made.Blocks[2].Call != "abc.call_002" {
		t.Errorf("got the blocks %s", lines(made))
	}
}
