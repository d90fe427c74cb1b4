package timeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// including is a start whose answer is to carry the timeline.
func including(code string, more object) object {
	all := object{
		"lang": "python", "code": code, "outputs": []string{"a.txt", "a.pdf"},
		"timeline": object{"turn_id": "t-7", "tool_call_id": "abc", "notes": "so", "include": true},
	}
	maps.Copy(all, more)
	return all
}

// ending writes the outputs of including.
const ending = "open('a.txt', 'w').write('A')\nopen('a.pdf', 'wb').write(b'%PDF-1.4 /Type /Page ')\n"

// included returns the timeline in an answer, and what the route tells of the same execution.
func included(t *testing.T, c harness.Client, a harness.Answer) (in, route string) {
	t.Helper()
	var answer, alone map[string]json.RawMessage
	if err := json.Unmarshal([]byte(a.Raw), &answer); err != nil {
		t.Fatal(err)
	}
	told := timelineOf(t, c, a, "?view=blocks")
	if err := json.Unmarshal([]byte(told.Raw), &alone); err != nil {
		t.Fatal(err)
	}
	return string(answer["timeline"]), `{"blocks":` + string(alone["blocks"]) + `}`
}

// TestCallIDsOfAllModels names the call as models and their clients do.
func TestCallIDsOfAllModels(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for id, path := range map[string]string{"functions.run_code:0": "functions.run_code%3A0", "call_a|fc_b": "call_a%7Cfc_b"} {
			a := c.Post(t, object{"code": "print(1)", "timeline": object{"turn_id": "turn_1", "tool_call_id": id, "include": true}})
			a.Completes(t, "1\n")
			harness.Contains(t, "the timeline", a.Raw, `"path":"tc:turn_1.`+path+`.call"`, `"call_id":"`+id+`"`)
		}
	})
}

// TestInclude: the terminal answer carries the blocks, with or without tools, and so does the answer to
// a retry, until a file is deleted.
func TestInclude(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox|harness.EachStore, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, nil)
		c := server.Alice()
		first := c.Pause(t, including("await ask(n=1)\n"+ending, object{"tools": harness.Tools("ask")}))
		if strings.Contains(first.Raw, "timeline") {
			t.Errorf("a pause carries a timeline: %v", first)
		}
		next := first.Continue(harness.Echo)
		a := c.Post(t, next)
		in, route := included(t, c, a)
		if in != route || !strings.Contains(in, document) || !strings.Contains(in, `"path":"fi:t-7.files/a.txt"`) {
			t.Errorf("the answer carries\n%s\nand the route tells\n%s", in, route)
		}
		if again := c.Post(t, next); again.Raw != a.Raw {
			t.Errorf("a retry gets\n%v\nand the first answer was\n%v", again, a)
		}
		plain := c.Exec(t, nil, including(ending, nil)).Answer
		if in, route := included(t, c, plain); in != route || !strings.Contains(in, document) {
			t.Errorf("/exec carries\n%s\nand the route tells\n%s", in, route)
		}
		without := c.Exec(t, nil, including(ending, object{"timeline": object{}})).Answer
		if strings.Contains(without.Raw, `"timeline"`) {
			t.Errorf("without include: %v", without)
		}
		// The last event of a live answer is the answer, so that the whole is no JSON.
		live, _ := c.Request(t.Context(), http.MethodPost, harness.ExecPath, http.Header{"Accept": {"text/event-stream"}}, including(ending, nil))
		if !strings.Contains(live.Raw, `"timeline":{"blocks":[`) || !strings.Contains(live.Raw, document) {
			t.Errorf("a live answer has no timeline: %v", live)
		}
		failed := c.Exec(t, nil, including("raise ValueError('no')", nil)).Answer
		if in, route := included(t, c, failed); in != route || !strings.Contains(in, "Missing output files: t-7/files/a.txt, t-7/files/a.pdf") {
			t.Errorf("a failed program carries\n%s\nand the route tells\n%s", in, route)
		}

		for _, b := range timelineOf(t, c, a, "").Blocks {
			if b.Path == "fi:t-7.files/a.pdf" {
				session, id, _ := strings.Cut(b.Meta["key"], "/")
				if r := c.Files(t, http.MethodDelete, "/files/"+session+"/"+id); r.HTTPStatus != http.StatusOK {
					t.Fatalf("DELETE: got %v", r)
				}
			}
		}
		if again := c.Post(t, next); strings.Contains(again.Raw, document) || !strings.Contains(again.Raw, `content_omitted`) {
			t.Errorf("after the file was deleted a retry gets %v", again)
		}
	})
}

// TestSlowLiveAnswers: a live answer that carries a timeline is one of the timelines that are made for a
// client at once, until the client has read it. Slow clients cannot fill the memory of the server.
func TestSlowLiveAnswers(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		c := harness.ServeAlone(t, s, nil).Alice()
		route := "/executions/" + c.Exec(t, nil, including(ending, nil)).Execution() + "/timeline"
		large := including(`
import os
for n in range(4):
    with open(f"{n}.pdf", "wb") as f:
        f.write(b"%PDF-" + os.urandom(5_200_000))
`, object{"outputs": []string{"0.pdf", "1.pdf", "2.pdf", "3.pdf"}, "timeout": 60_000})
		for range 4 {
			unread(t, c, large)
		}
		err := harness.Within(50*time.Second, func() error {
			if r := c.Files(t, http.MethodGet, route); r.HTTPStatus != http.StatusTooManyRequests {
				return fmt.Errorf("beside 4 live answers that nobody reads the timeline is %v, want 429", r.HTTPStatus)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// unread starts a program with a live answer, of which only the beginning is read before the test ends.
func unread(t *testing.T, c harness.Client, start object) {
	t.Helper()
	encoded, err := json.Marshal(start)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.URL+harness.ExecPath, bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	c.Authorize(r)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		t.Errorf("got %d, want a live answer", response.StatusCode)
	}
}
