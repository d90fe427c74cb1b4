package contract

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"fermata/tests/harness"
)

var executionID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// TestExecutionHeader follows an execution through all sorts of answers, each of which says to which
// execution it belongs.
func TestExecutionHeader(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, setup harness.Setup) {
		s := harness.Serve(t, setup, nil)
		alice, bob := s.Alice(), s.Bob()
		of := func(a harness.Answer) string { return strings.Join(a.Header.Values("Fermata-Execution"), ",") }
		pause := alice.Pause(t, harness.Program{Code: "print(await ask())", Tools: harness.Tools("ask")})
		id := of(pause)
		if !executionID.MatchString(id) {
			t.Fatalf("a pause is of execution %q, want a UUID", id)
		}
		good := harness.Continuation{Token: pause.Token, Results: []harness.Result{{CallID: "call_001", Result: []byte("1")}}}
		wrong := harness.Continuation{Token: pause.Token, Results: []harness.Result{{CallID: "call_002"}}}
		forged := harness.Continuation{Token: pause.Token + "x", Results: good.Results}
		for _, c := range []struct {
			name   string
			client harness.Client
			body   any
			status int
			want   string
		}{
			{"another principal", bob, good, 403, id},
			{"a wrong result", alice, wrong, 400, id},
			{"no results", alice, harness.Continuation{Token: pause.Token}, 400, id},
			{"results of another principal that nobody reads", bob, harness.Continuation{Token: pause.Token}, 400, id},
			{"a forged token", alice, forged, 400, ""},
			{"a forged token without results", alice, harness.Continuation{Token: pause.Token + "x"}, 400, ""},
			{"no key", harness.Client{URL: s.URL}, good, 401, ""},
			{"the end", alice, good, 200, id},
			{"the same again", alice, good, 200, id},
			{"another continuation after the end", alice, wrong, 400, id},
			{"a malformed start", alice, `{"code":1}`, 400, ""},
		} {
			if a := c.client.Post(t, c.body); a.HTTPStatus != c.status || of(a) != c.want {
				t.Errorf("%s: got %v of execution %q, want %d of %q", c.name, a, of(a), c.status, c.want)
			}
		}
		other := alice.Post(t, harness.Program{Code: "1 / 0"})
		if !executionID.MatchString(of(other)) || of(other) == id {
			t.Errorf("a program that fails: got %v of execution %q, want a new one", other, of(other))
		}
		timeout := alice.Post(t, harness.Program{Code: "while True: pass", Timeout: 1000})
		if timeout.HTTPStatus != http.StatusRequestTimeout || !executionID.MatchString(of(timeout)) {
			t.Errorf("a program that takes too long: got %v of execution %q, want 408 of an execution", timeout, of(timeout))
		}
		plain, err := alice.Request(t.Context(), "POST", "/exec", nil, `{"lang":"bash","code":"exit 3"}`)
		if err != nil || !executionID.MatchString(of(plain)) {
			t.Errorf("a program without tools: got %v %v of execution %q, want an execution", plain, err, of(plain))
		}
		// The id comes before the stream. What is not JSON is an error of the harness.
		live, _ := alice.Request(t.Context(), "POST", harness.Programmatic, http.Header{"Accept": {"text/event-stream"}}, harness.Program{Code: "print(1)"})
		if !executionID.MatchString(of(live)) || !strings.Contains(live.Raw, `"execution":"`+of(live)+`"`) {
			t.Errorf("a live answer: got %v of execution %q, want that of its events", live, of(live))
		}
		repeated, _ := alice.Request(t.Context(), "POST", harness.Programmatic, http.Header{"Accept": {"text/event-stream"}}, good)
		if of(repeated) != id || !strings.Contains(repeated.Raw, "event: answer") {
			t.Errorf("a live answer that is repeated: got %v of execution %q, want %q", repeated, of(repeated), id)
		}
		keyed := alice.PostKeyed(t, "key-1", harness.Program{Code: "print(1)"})
		again := alice.PostKeyed(t, "key-1", harness.Program{Code: "print(1)"})
		reused := alice.PostKeyed(t, "key-1", harness.Program{Code: "print(2)"})
		if of(keyed) == "" || of(again) != of(keyed) || of(reused) != of(keyed) || reused.HTTPStatus != http.StatusConflict {
			t.Errorf("starts with a key are of executions %q, %q and, with %v, %q; want one", of(keyed), of(again), reused, of(reused))
		}
	})
}

// TestWordsOfStarts sends members that say what an execution is for. A mistake in one of them is
// refused before the program runs.
func TestWordsOfStarts(t *testing.T) {
	t.Parallel()
	alice := harness.Serve(t, harness.ProcessSetup(), nil).Alice()
	for _, c := range []struct {
		name, members, header string
		mention               string // in the refusal; empty for none
	}{
		{"all of them", `"title":"t","labels":{"a":"b"},"parent_call_id":"p"`, "", ""},
		{"a header", ``, "p", ""},
		{"no parent", `"parent_call_id":null`, "", ""},
		{"a title that is too long", `"title":"` + strings.Repeat("x", 201) + `"`, "", "title"},
		{"a title that is no text", `"title":{}`, "", "title"},
		{"labels that are no object", `"labels":["a"]`, "", "labels"},
		{"a label that is no text", `"labels":{"a":1}`, "", "labels.a"},
		{"a label with a bad name", `"labels":{"a b":"1"}`, "", "labels"},
		{"a parent that is no text", `"parent_call_id":1`, "", "parent_call_id"},
		{"an empty parent", `"parent_call_id":""`, "", "parent_call_id"},
		{"a header with a space", ``, "a b", "x-ptc-call-id"},
	} {
		for _, path := range []string{harness.Programmatic, "/v1/exec"} {
			body := `{"lang":"py","code":"print(1)"`
			if c.members != "" {
				body += "," + c.members
			}
			header := http.Header{}
			if c.header != "" {
				header.Set("x-ptc-call-id", c.header)
			}
			a, err := alice.Request(t.Context(), "POST", path, header, body+"}")
			if err != nil {
				t.Fatal(err)
			}
			if c.name == "all of them" {
				seen, err := alice.Request(t.Context(), "GET", "/executions/"+a.Header.Get("Fermata-Execution"), nil, nil)
				contract := map[string]string{harness.Programmatic: "programmatic", "/v1/exec": "exec"}[path]
				for _, word := range []string{`"title":"t"`, `"labels":{"a":"b"}`, `"parent_call_id":"p"`, `"contract":"` + contract + `"`} {
					if err != nil || !strings.Contains(seen.Raw, word) {
						t.Errorf("%s: the execution is %v %v, want %s", path, seen, err, word)
					}
				}
			}
			if c.mention == "" && (a.HTTPStatus != 200 || a.Stdout != "1\n") || c.mention != "" && (a.HTTPStatus != 400 || !strings.Contains(a.Error, c.mention)) {
				t.Errorf("%s, %s: got %v, want a refusal that mentions %q or none", c.name, path, a, c.mention)
			}
		}
	}
	// Starts with one key that name different parents are different starts.
	keyed := func(parent string) int {
		a, err := alice.Request(t.Context(), "POST", harness.Programmatic, http.Header{"Idempotency-Key": {"k"}, "X-Ptc-Call-Id": {parent}}, harness.Program{Code: "print(1)"})
		if err != nil {
			t.Fatal(err)
		}
		return a.HTTPStatus
	}
	if got := []int{keyed("a"), keyed("a"), keyed("b")}; got[0] != 200 || got[1] != 200 || got[2] != 409 {
		t.Errorf("starts with one key, twice for a parent and once for another: got %v, want 200, 200 and 409", got)
	}
}
