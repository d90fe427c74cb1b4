package console

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fermata/api"
	"fermata/api/console"
	"fermata/tests/harness"
)

// evil is one text with all that has ever made a page run a text.
const evil = `<img src=x onerror="canary=1">"><script>canary=1</script></script></style><svg/onload=canary=1>` +
	`javascript:canary=1 ' autofocus onfocus='canary=1' {{constructor.constructor('canary=1')()}} ${canary=1} <!-- ]]> ` +
	"\x1b]0;title\a\x1b]8;;http://x\x1b\\ \u202egpj\u2066 \u2028 \ufeff \U000e0041"

// TestHostileProgram has a program, its client and its tools say the worst in each field that is theirs.
func TestHostileProgram(t *testing.T) {
	t.Parallel()
	server := serve(t, nil)
	alice := server.Alice()
	quoted, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	// Python reads JSON's escapes except those of halves of characters.
	text := "json.loads(" + fmt.Sprintf("%q", string(quoted)) + ")"
	body := map[string]any{
		"code": "# " + strings.NewReplacer("\u2028", "", "\n", "").Replace(evil) + "\nevil = " + text + "\n" + harness.Py(`
			import sys
			print(evil)
			print(evil, file=sys.stderr)
			results = await asyncio.gather(get_weather(**{"city": evil, "__proto__": {"canary": evil}, "constructor": evil}), get_weather(city=evil), return_exceptions=True)
			print(results)
			open("<img src=x onerror=canary=1>.png", "w").write(evil)
			open("'\"><script>canary=1<.svg", "w").write(evil)
			raise Exception(evil)
		`),
		"tools":          []map[string]any{{"name": "get_weather", "description": evil}},
		"title":          strings.Map(printable, evil)[:150],
		"labels":         map[string]string{"__proto__": evil, "constructor": evil},
		"parent_call_id": "<img/src=x/onerror=canary=1>\"'",
	}
	pause := alice.Pause(t, body)
	tb := newTab(t, server.URL)
	tb.enter("key-a")
	id := executionOf(t, pause)
	tb.wait("the list has it", "document.querySelector('a[href$=\""+id+"\"]') !== null")
	tb.click("a[href$='"+id+"']", "", `document.querySelector(".execution-view") !== null`)
	tb.see(".waiting h2", "Waits for 2 calls")
	tb.click(".calls .tool", "get_weather", `document.querySelector(".call-detail h3")?.checkVisibility()`)
	tb.read(".output", `<img src=x onerror="canary=1">`)
	tb.read(".output", `\u202e`)
	tb.shoot("hostile")
	next := pause.Continue(harness.Value(string(quoted)))
	next.Results[1] = harness.Result{CallID: pause.Calls[1].ID, IsError: true, Message: evil}
	if a := alice.Post(t, next); a.Status != "error" {
		t.Fatalf("got %v, want an error", a)
	}
	tb.see(".end h2", "Failed")
	tb.read(".end", "<script>canary=1</script>")
	tb.read(".files", "<img src=x onerror=canary=1>.png")
	tb.read(".files", "not a picture, in spite of its name")

	tb.playground()
	tb.program(body["code"].(string), `[{"name":"get_weather"}]`)
	tb.write("#name", evil[:40])
	tb.click("button", "Run", `document.querySelector("#answer-1") !== null`)
	tb.write("#answer-0", string(quoted))
	tb.write("#answer-1", string(quoted))
	tb.click("button", "Send the answers", found(".end h2", "Failed")+" !== undefined")
	tb.clean()
}

// printable drops control characters, which titles need not take.
func printable(r rune) rune {
	if r < ' ' {
		return -1
	}
	return r
}

// TestHostileServer says the worst in every field of every answer, those among them that a good server
// fills in itself: the console believes none.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	const id = "0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1f0"
	summary := map[string]any{
		"id": id, "session": evil, "status": evil, "contract": evil, "language": evil, "title": evil, "labels": map[string]string{evil: evil, "__proto__": evil},
		"parent_call_id": evil, "created_at": evil, "ended_at": evil, "rounds": evil, "round_limit": evil, "calls": evil, "ran_ms": evil, "budget_ms": evil,
		"pause_expires_at": evil, "error": evil, "server": evil, "principal": evil, "code": evil, "stdout": evil, "stderr": evil,
	}
	file := map[string]any{"id": "a", "name": evil + ".png", "session_id": "s", "storage_session_id": "s", "kind": "skill", "resource_id": evil, "version": evil}
	events := []map[string]any{
		{"type": "execution.started", "execution": evil, "session": evil, "language": "python", "contract": evil, "code": evil + "\n" + evil, "tools": []string{evil}, "timeout_ms": evil, "title": evil, "labels": map[string]string{evil: evil}},
		{"type": "output", "stream": evil, "offset": evil, "text": evil + "\n"},
		{"type": "call.started", "call": evil, "record": evil, "tool": evil, "toolset": evil, "runner": evil, "input": map[string]any{evil: evil, "__proto__": map[string]any{"canary": 1}}, "line": 2},
		{"type": "call.started", "call": "__proto__", "record": evil, "tool": "__proto__", "input": evil, "line": 1e9},
		{"type": "call.started", "call": "c", "record": evil, "tool": evil, "input": map[string]any{"truncated": true, "bytes": 1e12, "head": evil}, "line": evil},
		{"type": "approval.requested", "call": "asked", "record": evil, "tool": evil, "input": evil, "line": 1},
		{"type": "approval.requested", "call": "decided", "record": evil, "tool": evil, "input": evil, "line": 1},
		{"type": "approval.refused", "call": "decided", "by": evil, "reason": evil},
		{"type": "approval.given", "call": evil, "by": map[string]any{evil: evil}, "reason": 1e9},
		{"type": "execution.paused", "round": evil, "waiting": []string{evil, "__proto__", "asked"}, "expires_at": evil},
		{"type": "call.failed", "call": "c", "record": evil, "error": evil, "code": evil, "where": evil, "took_ms": evil},
		{"type": "file.stored", "file": file},
		{"type": evil},
		{"type": "execution.ended", "status": evil, "reason": evil, "error": evil, "exit_code": evil, "ran_ms": evil, "rounds": evil, "calls": evil, "stdout_bytes": evil, "stderr_bytes": evil, "truncated": evil},
	}
	router := api.New(api.Options{Log: slog.New(slog.DiscardHandler)})
	if err := console.Register(router); err != nil {
		t.Fatal(err)
	}
	answer := func(v any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v) // The page asks again.
		}
	}
	// stream sends the events from the first to the last, and then the answer, if there is one.
	stream := func(events []map[string]any, last any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i, e := range events {
				e := mapWith(e, "seq", i+1)
				if e["time"] == nil {
					e["time"] = "2026-11-22T10:00:00.000Z"
				}
				raw, err := json.Marshal(e)
				if err != nil {
					panic(err) // it is JSON
				}
				_, _ = fmt.Fprintf(w, "id: %d\nevent: x\ndata: %s\n\n", i+1, raw)
			}
			if last != nil {
				raw, err := json.Marshal(map[string]any{"http_status": 200, "body": last})
				if err != nil {
					panic(err) // it is JSON
				}
				_, _ = fmt.Fprintf(w, "event: answer\ndata: %s\n\n", raw)
			}
		}
	}
	pause := map[string]any{"status": "tool_call_required", "session_id": evil, "continuation_token": evil, "tool_calls": []map[string]any{{"id": evil, "name": evil, "input": evil}}}
	mux := http.NewServeMux()
	mux.Handle("GET /console", router)
	mux.Handle("GET /executions", answer(map[string]any{"data": []any{summary, mapWith(summary, "id", evil)}, "next": evil}))
	mux.Handle("GET /executions/{id}", answer(summary))
	mux.Handle("GET /executions/{id}/events", stream(events, nil))
	mux.Handle("POST /exec/programmatic", stream(events[:6], pause))
	mux.HandleFunc("POST /executions/{id}/cancel", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		answer(map[string]any{"error": evil, "message": evil})(w, r)
	})
	mux.HandleFunc("GET /download/{session}/{file}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<script>canary=1</script>"))
	})
	server := httptest.NewServer(mux)
	defer server.Close()

	tb := newTab(t, server.URL)
	tb.open()
	tb.see("h1", "Executions")
	tb.wait("there is one row, since the other has no good id", `document.querySelectorAll(".execution").length === 1`)
	tb.click(".execution a", "", `document.querySelector(".end")?.checkVisibility()`)
	tb.read(".files", "not a picture, in spite of its name")
	for range 2 {
		tb.press("Tab")
	}
	tb.wait("all calls are drawn", `document.querySelectorAll(".calls [role=option]").length === 5`)
	for i := range 5 {
		tb.wait("a call is chosen", fmt.Sprintf(`(document.querySelector("#call-%d").click(), document.querySelector(".call-detail h3").checkVisibility())`, i))
	}
	tb.shoot("hostile")
	tb.click("nav a", "Playground", `document.querySelector("#code") !== null`)
	tb.click("button", "Run", `document.querySelector("#answer-0") !== null`)
	tb.clean()
}

// mapWith returns a copy of m with one more member.
func mapWith(m map[string]any, name string, value any) map[string]any {
	with := map[string]any{name: value}
	for k, v := range m {
		if k != name {
			with[k] = v
		}
	}
	return with
}

// TestKey checks where the key is, and that it goes.
func TestKey(t *testing.T) {
	t.Parallel()
	server := serve(t, nil)
	pauses(t, server.Alice(), start{Program: dinner, Title: "A secret dinner"})
	tb := newTab(t, server.URL)
	tb.enter("key-a")
	tb.see("a", "A secret dinner")
	elsewhere := func() string {
		return ask[string](tb, `location.href + document.cookie + JSON.stringify(localStorage) + JSON.stringify(history.state) + document.documentElement.outerHTML + JSON.stringify(performance.getEntries())`)
	}
	if strings.Contains(elsewhere(), "key-a") {
		t.Error("the key is where it should not be")
	}
	if got := ask[string](tb, `JSON.stringify(sessionStorage)`); !strings.Contains(got, "key-a") {
		t.Fatalf("sessionStorage has %s", got)
	}
	for _, r := range tb.requests {
		if strings.Contains(r, "key-a") {
			t.Errorf("the key is in %s", r)
		}
	}
	// It holds in this tab, also over a reload.
	tb.call(reload)
	tb.see("a", "A secret dinner")

	tb.click("button", "Sign out", found("h1", "Sign in")+" !== undefined")
	gone := func() {
		t.Helper()
		if all := elsewhere() + ask[string](tb, `JSON.stringify(sessionStorage)`); strings.Contains(all, "key-a") || strings.Contains(all, "A secret dinner") {
			t.Error("something is left after the end of the session")
		}
	}
	gone()

	// A key that the server does not accept any more goes as well.
	tb.write("#key", "key-a")
	tb.press("Enter")
	tb.see("a", "A secret dinner")
	ask[bool](tb, `(() => { for (const k of Object.keys(sessionStorage)) sessionStorage.setItem(k, "removed"); return true; })()`)
	tb.see("h1", "Sign in")
	tb.read(".failure", "does not accept this key any more")
	gone()
	if got := ask[string](tb, `JSON.stringify(sessionStorage)`); got != "{}" {
		t.Errorf("sessionStorage has %s", got)
	}
	tb.clean()
}

// TestHeaders checks what a browser is told about the console.
func TestHeaders(t *testing.T) {
	t.Parallel()
	server := serve(t, nil)
	response, err := http.Get(server.URL + "/console")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for name, want := range map[string]string{
		"Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff",
	} {
		if got := response.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := response.Header.Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("other origins may read it: %s", got)
	}
}
