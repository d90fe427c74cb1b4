package librechat_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"fermata/engine"
	"fermata/engine/outputs"
)

// FuzzPlain: whatever the body of a program without tools, the answer is 200, 400 or
// 413, in JSON, and what reaches the execution can be run.
func FuzzPlain(f *testing.F) {
	for _, seed := range []string{
		`{"lang":"py","code":"print(1)","args":["a","\ud800",""],"timeout":1e3,"session_id":"x","files":[]}`,
		`{"language":"sh","lang":7,"code":"\u0000","args":"\u0000"}`, `{"lang":"bash","code":"#","args":[[]]}`, `{"args":`, `[`,
		`{"lang":"py","code":"#","outputs":["a",{"path":"b/c","required":false,"min_bytes":0,"mime":"a/b","visibility":"internal"}],"on_missing":"report"}`,
		`{"lang":"py","code":"#","outputs":["turn_2/files/a"],"timeline":{"turn_id":"turn_2","notes":"\ud800","include":true}}`,
	} {
		f.Add([]byte(seed))
	}
	e := completed()
	h := newHandler(e, options())
	f.Fuzz(func(t *testing.T, body []byte) {
		e.starts = nil
		w := call{path: execPath, body: string(body)}.do(t, h)
		switch w.Code {
		case http.StatusOK, http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		default:
			t.Errorf("%q was answered with %d %s", body, w.Code, w.Body)
		}
		var answer struct{ Error string }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || (answer.Error == "") != (w.Code == http.StatusOK) {
			t.Errorf("%q was answered with %d %q (%v), want JSON, with an error if it is refused", body, w.Code, w.Body, err)
		}
		if (w.Code == http.StatusOK) != (len(e.starts) == 1) {
			t.Errorf("%q was answered with %d and asked %d executions", body, w.Code, len(e.starts))
		}
		for _, start := range e.starts {
			checkContract(t, body, start)
			if !json.Valid(start.Code) || len(start.Tools) > 0 || strings.Contains(strings.Join(start.Args, ""), "\x00") {
				t.Errorf("%q passed as %+v", body, start)
			}
		}
	})
}

// checkContract checks that what the program must produce is beneath the workspace, and that the engine
// can read it again.
func checkContract(t *testing.T, body []byte, start engine.Start) {
	t.Helper()
	if start.SentTimeline != nil && !json.Valid(start.SentTimeline) {
		t.Errorf("%q passed with the timeline %q", body, start.SentTimeline)
	}
	if start.Outputs == nil {
		return
	}
	again, err := outputs.Parse(start.SentOutputs, start.Outputs.Turn)
	if err != nil || !slices.Equal(again, start.Outputs.Outputs) {
		t.Errorf("%q passed with %+v, and what it sends is %+v, %v", body, start.Outputs, again, err)
	}
	for _, o := range start.Outputs.Outputs {
		if !filepath.IsLocal(o.File) || strings.ContainsAny(o.File, "\n\x00\\") {
			t.Errorf("%q passed with the output %q", body, o.File)
		}
	}
}

// FuzzProgrammatic: whatever the body, the answer is 200, 400 or 413, in JSON and
// in the envelope of the path, and what reaches the execution is JSON.
func FuzzProgrammatic(f *testing.F) {
	for _, seed := range []string{
		`{"code":"print(1)","tools":[{"name":"a","description":"b","parameters":{}}],"timeout":1e3,"files":[],"lang":"py"}`,
		`{"continuation_token":"t","tool_results":[{"call_id":"call_001","result":[1.0,"\ud800"],"is_error":true,"error_message":null}]}`,
		`{"code":"#","tools":[{"function":{"name":"a","parameters":{}},"inputSchema":{}},{"function":[]}],"timeut":1}`, `{"code":"#","tools":[[]],"tools":null}`, `{"code":{"code":[]}}`, `[`, `{"a":"\`, "{\"code\":\"\xff\"}", `{"timeout":-0,"code":"#"}`,
		`{"code":"#"}{}`, strings.Repeat("[", 600), `{"continuation_token":null,"tool_results":[null,1]}`,
		`{"code":"#","outputs":["a",{"path":"\ud800","description":"\u0000"},{}],"on_missing":"error"}`, `{"code":"#","outputs":{},"timeline":[]}`,
		`{"code":"#","outputs":["../a","a/","b\n"],"timeline":{"turnId":1}}`, `{"continuation_token":"t","tool_results":[],"outputs":7}`,
	} {
		f.Add([]byte(seed))
	}
	e := completed()
	h := newHandler(e, options())
	f.Fuzz(func(t *testing.T, body []byte) {
		e.starts, e.resumes = nil, nil
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(string(body)))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-API-Key", "good-key")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		switch w.Code {
		case http.StatusOK, http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		default:
			t.Errorf("%q was answered with %d %s", body, w.Code, w.Body)
		}
		var answer struct{ Status, Error string }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || !utf8.Valid(w.Body.Bytes()) {
			t.Errorf("%q was answered with %q, which is not JSON: %v", body, w.Body, err)
		}
		if w.Code != http.StatusOK && (answer.Status != "error" || answer.Error == "") {
			t.Errorf("%q was answered with %d %s, want an error in it", body, w.Code, w.Body)
		}
		if asked := len(e.starts) + len(e.resumes); (w.Code == http.StatusOK) != (asked == 1) {
			t.Errorf("%q was answered with %d and asked %d executions", body, w.Code, asked)
		}
		for _, start := range e.starts {
			checkContract(t, body, start)
			if !json.Valid(start.Code) || !json.Valid(body) {
				t.Errorf("%q passed with the code %q", body, start.Code)
			}
		}
		for _, resume := range e.resumes {
			for _, result := range resume.Results {
				if (result.Value != nil && !json.Valid(result.Value)) || !json.Valid(body) {
					t.Errorf("%q passed with the result %q", body, result.Value)
				}
			}
		}
	})
}
