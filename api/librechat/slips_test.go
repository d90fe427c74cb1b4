package librechat_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// slips are requests with one slip each, and the text that names it.
var slips = map[string]string{
	`{"code":"#","timeut":5000}`:      `"timeut" is not known; did you mean timeout?`,
	`{"code":"#","tool":[]}`:          `"tool" is not known; did you mean tools?`,
	`{"code":"#","sessionId":"x"}`:    `"sessionId" is not known; did you mean session_id?`,
	`{"code":"#","time\u006fut_":1}`:  `"timeout_" is not known; did you mean timeout?`,
	`{"code":"#","x":1,"titel":"a"}`:  `"titel" is not known; did you mean title?`,
	`{"code":"#","timeut":null}`:      `"timeut" is not known; did you mean timeout?`,
	`{"cod":"#","code":"#","Code":1}`: `"Code" is not known; did you mean code?`,

	`{"code":"#","tools":[{"name":"a"},{"name":"b","paramerers":{}}]}`:                      `"paramerers" in tools[1] is not known; did you mean parameters?`,
	`{"code":"#","tools":[{"name":"a"},{"function":{"name":"b","input_schema":{}}}]}`:       `"input_schema" in tools[1].function is not known; did you mean parameters?`,
	`{"code":"#","files":[{"id":"x","names":"a"}]}`:                                         `"names" in files[0] is not known; did you mean name?`,
	`{"code":"#","outputs":["a",{"path":"b","min_size":7}]}`:                                `"min_size" in outputs[1] is not known; did you mean min_bytes?`,
	`{"code":"#","outputs":[{"path":"b","paths":"c"}]}`:                                     `"paths" in outputs[0] is not known; did you mean path?`,
	`{"code":"#","timeline":{"turnId":"t"}}`:                                                `"turnId" in timeline is not known; did you mean turn_id?`,
	`{"code":"#","timeline":{"turn_id":"t","includes":true}}`:                               `"includes" in timeline is not known; did you mean include?`,
	`{"continuation_token":"t","tool_results":[{"call_id":"call_001","error":"boom"}]}`:     `"error" in tool_results[0] is not known; did you mean error_message?`,
	`{"continuation_token":"t","tool_results":[{"call_id":"call_001"},{"output":1}]}`:       `"output" in tool_results[1] is not known; did you mean result?`,
	`{"continuation_token":"t","tool_results":[{"call_id":"call_001","isError":true}]}`:     `"isError" in tool_results[0] is not known; did you mean is_error?`,
	`{"continuation_token":"t","tool_results":[],"toolResults":[]}`:                         `"toolResults" is not known; did you mean tool_results?`,
	`{"continuation_token":"t","tool_results":[{"call_id":"call_001","errors":["a"]}]}`:     `"errors" in tool_results[0] is not known; did you mean error_message?`,
	`{"continuation_token":"t","tool_results":[{"callId":"call_001","result":1,"tool":1}]}`: `"callId" in tool_results[0] is not known; did you mean call_id?`,
}

func TestSlips(t *testing.T) {
	for body, text := range slips {
		e := completed()
		status, answer := post(t, e, body)
		if want := `{"status":"error","error":` + quote(text) + `}`; status != http.StatusBadRequest || answer != want {
			t.Errorf("%s: got %d %s, want 400 %s", body, status, answer, want)
		}
		if len(e.starts)+len(e.resumes) != 0 {
			t.Errorf("%s: the execution was asked all the same", body)
		}
	}
}

// TestSlipsOfLibreChat sends slips as LibreChat: it gets what it would get without them, and the
// operator a warning.
func TestSlipsOfLibreChat(t *testing.T) {
	for body, text := range slips {
		var log bytes.Buffer
		o := options()
		o.Log = slog.New(slog.NewJSONHandler(&log, nil))
		w := call{body: body, header: map[string]string{"User-Agent": "LibreChat/1.0"}}.do(t, newHandler(completed(), o))
		if strings.Contains(w.Body.String(), "not known") {
			t.Errorf("%s: got %d %s, want no word about the slip", body, w.Code, w.Body)
		}
		var line struct{ Level, Warning string }
		if err := json.Unmarshal(log.Bytes(), &line); err != nil || line.Level != "WARN" || line.Warning != text {
			t.Errorf("%s: the log says %s (%v), want a warning: %s", body, log.Bytes(), err, text)
		}
	}
}

// TestFailedResultsOfLibreChat sends a slip that is tolerated: a tool that failed has failed all the
// same.
func TestFailedResultsOfLibreChat(t *testing.T) {
	for _, c := range []struct {
		members string
		failed  bool
		message string
	}{
		{`"error":"boom"`, true, `"boom"`},
		{`"error":{"code":5},"result":1`, true, ``},
		{`"error":"boom","error_message":"more"`, true, `"more"`},
		{`"error":"boom","is_error":true`, true, `"boom"`},
		{`"error":null,"result":1`, false, ``},
		{`"error":"boom","is_error":false`, false, ``},
	} {
		e := completed()
		body := `{"continuation_token":"t","tool_results":[{"call_id":"call_001",` + c.members + `}]}`
		w := call{body: body, header: map[string]string{"User-Agent": "LibreChat/1.0"}}.do(t, newHandler(e, options()))
		if w.Code != http.StatusOK {
			t.Fatalf("%s: got %d %s, want 200", body, w.Code, w.Body)
		}
		if got := e.resumes[0].Results[0]; got.Failed != c.failed || string(got.Message) != c.message {
			t.Errorf("%s: got %+v, want failed %v with %s", body, got, c.failed, c.message)
		}
	}
}

// TestLibreChatAtExec sends what LibreChat adds to its requests, and tools where none are taken.
func TestLibreChatAtExec(t *testing.T) {
	const own = `"executionRouteKey":"k","environmentType":"t","environmentId":"e","bridgeWorkerId":"w","codeSessionKey":"s","LIBRECHAT_CODE_API_KEY":"x",` +
		`"user_id":"u","entity_id":"e","runtime_session_hint":"h","workspace_instance_id":"w"`
	for body, agent := range map[string]string{
		`{"lang":"py","code":"#",` + own + `}`:                        "curl/8",
		`{"lang":"py","code":"#",` + own + `,"tools":[{"name":"a"}]}`: "LibreChat/1.0",
	} {
		w := call{path: execPath, body: body, header: map[string]string{"User-Agent": agent}}.do(t, newHandler(completed(), options()))
		if w.Code != http.StatusOK {
			t.Errorf("%s as %s: got %d %s, want 200", body, agent, w.Code, w.Body)
		}
	}
}
