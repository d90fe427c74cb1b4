package live

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"fermata/tests/harness"
)

// A summary is what tests look at of a summary and of a detail.
type summary struct {
	ID      string           `json:"id"`
	Session string           `json:"session"`
	Status  string           `json:"status"`
	Created time.Time        `json:"created_at"`
	Ended   *time.Time       `json:"ended_at"`
	Rounds  int              `json:"rounds"`
	Limit   int              `json:"round_limit"`
	Calls   int              `json:"calls"`
	Ran     int              `json:"ran_ms"`
	Budget  int              `json:"budget_ms"`
	Expires *time.Time       `json:"pause_expires_at"`
	Code    string           `json:"code"`
	Stdout  string           `json:"stdout"`
	Stderr  string           `json:"stderr"`
	Files   []map[string]any `json:"files"`
	Waiting []struct {
		Call, Tool string
		Input      json.RawMessage
		Since      time.Time
	} `json:"waiting"`
	States    map[string]int `json:"calls_by_state"`
	Principal string         `json:"principal"`
}

// A call is a call record.
type call struct {
	ID        string          `json:"call_id"`
	Type      string          `json:"type"`
	Parent    *string         `json:"ptc_call_id"`
	Execution string          `json:"execution"`
	Call      string          `json:"call"`
	Tool      string          `json:"tool_name"`
	Input     json.RawMessage `json:"input"`
	Output    json.RawMessage `json:"output"`
	Error     string          `json:"error"`
	Status    string          `json:"status"`
	Took      *int            `json:"took_ms"`
}

// pages returns a whole list, page after page of a size.
func pages[T any](t testing.TB, c harness.Client, path string, limit int) (all []T) {
	t.Helper()
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	for after := ""; ; {
		var p struct {
			Data []T     `json:"data"`
			Next *string `json:"next"`
		}
		look(t, c, fmt.Sprintf("%s%slimit=%d%s", path, separator, limit, after), &p)
		if len(p.Data) > limit {
			t.Fatalf("%s: a page of %d, want at most %d", path, len(p.Data), limit)
		}
		all = append(all, p.Data...)
		if p.Next == nil {
			return all
		}
		after = "&after=" + url.QueryEscape(*p.Next)
	}
}

// An execution can be seen from its start to its end.
func TestDetail(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		code := harness.Py(`
			import asyncio, sys
			print("begin", flush=True)
			print("warning", file=sys.stderr, flush=True)
			await asyncio.gather(ask(n=1), ask(n=2), return_exceptions=True)
			open("left.txt", "w").write("x")
			print("x" * 100_000 + "é")
		`)
		paused := run(t, c, harness.Program{Code: code, Tools: harness.Tools("ask"), Timeout: 30000})
		var d summary
		look(t, c, "/executions/"+paused.ID, &d)
		if d.Status != "paused" || d.Rounds != 1 || d.Limit != 20 || d.Calls != 2 || d.Budget != 30000 || d.Expires == nil || d.Ended != nil ||
			d.Code != code || d.Stdout != "begin\n" || d.Stderr != "warning\n" || d.Session != paused.Session || d.Principal != "" ||
			len(d.Waiting) != 2 || d.Waiting[1].Call != "call_002" || d.Waiting[1].Tool != "ask" || harness.Compact(string(d.Waiting[1].Input)) != `{"n":2}` ||
			d.States["executing"] != 2 {
			t.Errorf("paused: %+v", d)
		}
		if calls := pages[call](t, c, "/executions/"+paused.ID+"/calls", 1000); len(calls) != 2 || calls[0].Status != "executing" || calls[0].Took != nil {
			t.Errorf("calls of a pause: %+v", calls)
		}
		next := paused.Continue(harness.Value(`{"a": null}`))
		next.Results[1] = harness.Result{CallID: "call_002", IsError: true, Message: "no"}
		ended := run(t, c, next)
		look(t, c, "/v1/executions/"+paused.ID, &d)
		if d.Status != "completed" || d.Ended == nil || d.Ended.Before(d.Created) || d.States["completed"] != 1 || d.States["failed"] != 1 || d.States["executing"] != 0 ||
			len(d.Files) != 1 || d.Files[0]["name"] != "left.txt" {
			t.Errorf("ended: %+v", d)
		}
		if want := ended.Stdout[len(ended.Stdout)-64<<10:]; d.Stdout != want {
			t.Errorf("stdout has %d bytes, want the last %d", len(d.Stdout), len(want))
		}
		calls := pages[call](t, c, "/executions/"+paused.ID+"/calls", 1)
		if len(calls) != 2 || calls[0].Call != "call_001" || calls[0].Status != "completed" || string(calls[0].Output) != `{"a":null}` || calls[0].Took == nil ||
			calls[1].Status != "failed" || calls[1].Error != "no" || calls[0].Type != "ptc" || calls[0].Parent != nil || calls[0].Execution != paused.ID ||
			!strings.HasPrefix(calls[0].ID, "ptc:") || calls[0].ID == calls[1].ID {
			t.Errorf("calls: %+v", calls)
		}
	})
}

// Lists have everything once, the newest first, in pages of any size.
func TestLists(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		c := harness.ServeAlone(t, s, nil).Alice()
		var ids []string
		for i := range 7 {
			session := fmt.Sprintf("session-%d-of-the-test", i%2)
			first := run(t, c, harness.Program{
				Code: fmt.Sprintf("await ask_%d(n=1)\nawait ask_%d(n=2)", i%3, i%3), Tools: harness.Tools(fmt.Sprintf("ask_%d", i%3)), Session: session,
			})
			ids = append([]string{first.ID}, ids...)
			second := run(t, c, first.Continue(harness.Value("1")))
			if i != 3 {
				run(t, c, second.Continue(harness.Failure("no")))
			}
		}
		list := func(query string, limit int) []summary { return pages[summary](t, c, "/executions"+query, limit) }
		all := list("", 200)
		for i, e := range all {
			if e.ID != ids[i] {
				t.Fatalf("execution %d is %s, want %s", i, e.ID, ids[i])
			}
		}
		for _, limit := range []int{1, 2, 3, 7, 8} {
			if got := list("", limit); len(got) != len(ids) {
				t.Errorf("pages of %d: got %d executions, want %d", limit, len(got), len(ids))
			}
		}
		stamp := func(t time.Time) string { return url.QueryEscape(t.Format(time.RFC3339Nano)) }
		for query, want := range map[string]int{
			"?status=paused": 1, "?status=completed": 0, "?status=error": 6, "?status=error&status=paused": 7, "?status=running": 0,
			"?session=session-1-of-the-test": 3, "?session=other": 0, "?tool=ask_0": 3, "?tool=ask": 0, "?parent_call_id=x": 0,
			"?label=a:b": 0, "?contract=mcp": 0, "?unknown=x": 7,
			"?since=" + stamp(all[2].Created): 3, "?until=" + stamp(all[2].Created): 4,
			"?since=" + stamp(all[4].Created) + "&until=" + stamp(all[2].Created): 2,
		} {
			for _, limit := range []int{1, 200} {
				if got := list(query, limit); len(got) != want {
					t.Errorf("%s in pages of %d: got %d executions, want %d", query, limit, len(got), want)
				}
			}
		}
		calls := pages[call](t, c, "/calls", 200)
		if len(calls) != 14 || calls[0].Execution != ids[0] || calls[0].Call != "call_002" || calls[1].Call != "call_001" {
			t.Errorf("got %d calls, the first %+v", len(calls), calls[0])
		}
		for _, limit := range []int{1, 3, 14, 15} {
			got := pages[call](t, c, "/calls", limit)
			if len(got) != len(calls) {
				t.Fatalf("pages of %d: got %d calls, want %d", limit, len(got), len(calls))
			}
			for i := range got {
				if got[i].ID != calls[i].ID {
					t.Errorf("pages of %d: call %d is %s, want %s", limit, i, got[i].ID, calls[i].ID)
				}
			}
		}
		for query, want := range map[string]int{
			"?status=executing": 1, "?status=completed": 7, "?status=failed": 6, "?status=waiting": 0, "?tool=ask_1": 4, "?toolset=x": 0, "?parent_call_id=x": 0,
			"?until=" + stamp(all[6].Created): 0, "?since=" + stamp(all[0].Created): 2,
		} {
			if got := pages[call](t, c, "/calls"+query, 3); len(got) != want {
				t.Errorf("/calls%s: got %d, want %d", query, len(got), want)
			}
		}
	})
}

// A bad parameter is refused with its name.
func TestBadParameters(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		id := run(t, c, harness.Program{Code: "print(1)"}).ID
		run(t, c, harness.Program{Code: "print(1)"})
		var p struct{ Next string }
		look(t, c, "/executions?limit=1", &p)
		raw, err := base64.RawURLEncoding.DecodeString(p.Next)
		if err != nil {
			t.Fatal(err)
		}
		edited := func(at int, b byte) string {
			c := append([]byte{}, raw...)
			c[at] ^= b
			return base64.RawURLEncoding.EncodeToString(c)
		}
		events, calls := "/executions/"+id+"/events?", "/executions/"+id+"/calls?"
		for query, name := range map[string]string{
			"/executions?limit=0": "limit", "/executions?limit=201": "limit", "/executions?limit=-1": "limit", "/executions?limit=1e1": "limit",
			"/executions?limit=": "limit", "/executions?limit=1&limit=1": "limit", "/executions?limit=99999999999999999999": "limit",
			"/executions?status=gone": "status", "/executions?status=": "status", "/executions?contract=x": "contract",
			"/executions?session=": "session", "/executions?session=a&session=b": "session", "/executions?tool=" + strings.Repeat("x", 257): "tool",
			"/executions?label=x": "label", "/executions?label=A:b": "label", "/executions?label=:b": "label",
			"/executions?" + strings.Repeat("label=a:b&", 5000): "label", "/executions?label=a:" + strings.Repeat("x", 257): "label",
			"/executions?since=yesterday": "since", "/executions?until=1": "until", "/executions?since=2026-01-01": "since",
			"/executions?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z": "since",
			"/executions?after=x": "after", "/executions?after=": "after", "/executions?after=" + p.Next + "A": "after",
			"/executions?after=" + p.Next + "%0A": "after", "/executions?after=" + p.Next[1:]: "after", "/executions?after=" + p.Next + "&after=" + p.Next: "after",
			"/executions?after=" + edited(0, 1): "after", "/executions?after=" + edited(1, 0x80): "after", "/executions?after=" + edited(32, 1): "after",
			"/executions?principal=bob": "principal", "/calls?principal=bob": "principal",
			"/calls?after=" + p.Next: "after", "/calls?status=running": "status", "/calls?limit=201": "limit", "/calls?since=x": "since", "/calls?tool=": "tool",
			calls + "limit=1001": "limit", calls + "after=" + p.Next: "after", calls + "after=1": "after",
			events + "limit=1001": "limit", events + "after=-1": "after", events + "after=9223372036854775808": "after", events + "after=1e3": "after",
			events + "after=1;": "malformed", events + "after=%2B1": "after", events + "after= 1": "after", events + "after=": "after", events + "view=all": "view", events + "view=tool_calls": "view",
		} {
			status, _, body := get(t, c, http.MethodGet, strings.ReplaceAll(query, " ", "%20"), nil)
			var e struct{ Error string }
			_ = json.Unmarshal([]byte(body), &e)
			if status != http.StatusBadRequest || !strings.Contains(e.Error, name) {
				t.Errorf("%.100s: got %d %s, want 400 with %s", query, status, body, name)
			}
		}
		for _, last := range []string{"-1", "9223372036854775808", "1e3", "1;", "x", id} {
			status, _, body := get(t, c, http.MethodGet, strings.TrimSuffix(events, "?"), http.Header{"Last-Event-Id": {last}, "Accept": {eventStream}})
			if status != http.StatusBadRequest || !strings.Contains(body, "Last-Event-ID") {
				t.Errorf("Last-Event-ID %s: got %d %s", last, status, body)
			}
		}
		// A place of another list, or of somebody else's, is just a place.
		if status, _, body := get(t, c, http.MethodGet, "/executions?after="+edited(10, 1), nil); status != http.StatusOK {
			t.Errorf("a cursor with another id: got %d %s", status, body)
		}
	})
}

// Another client's execution is one that never was.
func TestForeign(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		alice, bob := server.Alice(), server.Bob()
		paused := run(t, alice, harness.AskOnce)
		if status, _, body := get(t, alice, http.MethodGet, "/executions/"+paused.ID, nil); status != http.StatusOK {
			t.Fatalf("the owner: got %d %s", status, body)
		}
		for _, route := range []struct{ method, path string }{
			{http.MethodGet, ""},
			{http.MethodGet, "/events"},
			{http.MethodGet, "/calls"},
			{http.MethodHead, "/events"},
			{http.MethodDelete, ""},
			{http.MethodPost, "/cancel"},
			{http.MethodGet, "/events?view=tool_calls"},
			{http.MethodGet, "/events?after=3"},
		} {
			for _, accept := range []string{"*/*", eventStream, ndjson} {
				if accept != eventStream && strings.Contains(route.path, "view") {
					continue
				}
				answers := map[string]string{}
				for _, id := range []string{paused.ID, uuid.NewString(), strings.ToUpper(paused.ID), "x", uuid.Nil.String(), "urn:uuid:" + paused.ID, "%00", strings.Repeat("9", 5000)} {
					status, header, body := get(t, bob, route.method, "/executions/"+id+route.path, accepting(accept))
					for _, name := range []string{"Date", "X-Request-Id"} {
						header.Del(name)
					}
					answers[fmt.Sprintf("%d %v %s", status, header, body)] = id
				}
				if len(answers) != 1 {
					t.Errorf("%s %s, Accept %s: the answers differ: %v", route.method, route.path, accept, answers)
				}
				for a := range answers {
					if !strings.HasPrefix(a, "404 ") || route.method != http.MethodHead && !strings.HasSuffix(a, `{"error":"Execution not found"}`) {
						t.Errorf("%s %s: got %s, want 404", route.method, route.path, a)
					}
				}
			}
		}
		for _, path := range []string{"/executions", "/calls"} {
			if _, _, body := get(t, bob, http.MethodGet, path, nil); strings.Contains(body, paused.ID) {
				t.Errorf("bob sees alice's execution: %s", body)
			}
		}
		stranger := harness.Client{URL: bob.URL, Key: "wrong"}
		if status, _, body := get(t, stranger, http.MethodGet, "/executions/"+paused.ID, nil); status != http.StatusUnauthorized {
			t.Errorf("a stranger: got %d %s, want 401", status, body)
		}
		run(t, alice, paused.Continue(harness.Value("1"))).Completes(t, "1\n")
	})
}

// An execution can be ended and forgotten by its id.
func TestCancelAndForget(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		st, running := begin(t, c, harness.Program{Code: "import time\nprint(1, flush=True)\ntime.sleep(60)"})
		paused := run(t, c, harness.AskOnce)
		for _, id := range []string{running, paused.ID} {
			path := "/executions/" + id
			if status, _, body := get(t, c, http.MethodDelete, path, nil); status != http.StatusConflict || !strings.Contains(body, `"status":"`) {
				t.Errorf("DELETE of a live one: got %d %s, want 409", status, body)
			}
			status, _, body := get(t, c, http.MethodPost, path+"/cancel", nil)
			if want := fmt.Sprintf(`{"id":%q,"status":"cancelling"}`, id); status != http.StatusAccepted || body != want {
				t.Errorf("cancel: got %d %s, want 202 %s", status, body, want)
			}
			frames := open(t, c, http.MethodGet, path+"/events", nil, nil).all(t)
			if e := frames[len(frames)-1].event(t); e.Status != "cancelled" {
				t.Errorf("it ended as %s", frames[len(frames)-1].Data)
			}
			status, _, body = get(t, c, http.MethodPost, "/v1"+path+"/cancel", nil)
			if want := fmt.Sprintf(`{"error":"Execution has ended","id":%q,"status":"cancelled"}`, id); status != http.StatusConflict || body != want {
				t.Errorf("cancel of an ended one: got %d %s, want 409 %s", status, body, want)
			}
			if status, _, body := get(t, c, http.MethodDelete, path, nil); status != http.StatusNoContent {
				t.Errorf("DELETE: got %d %s, want 204", status, body)
			}
			for _, gone := range []string{"", "/events", "/calls"} {
				if status, _, body := get(t, c, http.MethodGet, path+gone, nil); status != http.StatusNotFound {
					t.Errorf("GET %s after DELETE: got %d %s", gone, status, body)
				}
			}
			if _, _, body := get(t, c, http.MethodGet, "/executions?limit=200", nil); strings.Contains(body, id) {
				t.Error("the list has what was forgotten")
			}
		}
		if a := st.liveAnswer(t); a.Status != http.StatusOK || a.Error != harness.CancelledText {
			t.Errorf("the request that ran: got %d %s", a.Status, a.Body)
		}
	})
}

// The view of tool calls tells the records of calls, also to a reader who begins in the middle.
func TestToolCallView(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		first := run(t, c, harness.Program{Code: "import asyncio\nawait asyncio.gather(ask(n=1), ask(n=2), return_exceptions=True)", Tools: harness.Tools("ask")})
		path := "/executions/" + first.ID + "/events?view=tool_calls"
		live := open(t, c, http.MethodGet, path, nil, nil)
		next := first.Continue(harness.Value("[1]"))
		next.Results[1] = harness.Result{CallID: "call_002", IsError: true, Message: "no"}
		run(t, c, next)
		frames := live.all(t)
		if got, want := names(frames), "tool_call_start tool_call_start tool_call_end tool_call_error done"; got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		records := pages[call](t, c, "/executions/"+first.ID+"/calls", 1000)
		for i, f := range frames[:4] {
			var got struct {
				call
				PTC bool `json:"ptc"`
			}
			if err := json.Unmarshal(f.Data, &got); err != nil {
				t.Fatal(err)
			}
			want := records[i%2]
			if i < 2 {
				want.Status = "executing"
			}
			if !got.PTC || got.ID != want.ID || got.Tool != "ask" || string(got.Input) != string(want.Input) || got.Status != want.Status || i >= 2 && string(got.Output) != string(want.Output) {
				t.Errorf("frame %d: %s, want %+v", i, f.Data, want)
			}
		}
		if got, want := string(frames[4].Data), fmt.Sprintf(`{"execution":%q,"status":"completed"}`, first.ID); got != want {
			t.Errorf("done: %s, want %s", got, want)
		}
		middle := open(t, c, http.MethodGet, path, http.Header{"Last-Event-Id": {strconv.FormatInt(frames[2].ID, 10)}}, nil).all(t)
		if len(middle) != 2 || string(middle[0].Data) != string(frames[3].Data) || middle[0].ID != frames[3].ID {
			t.Errorf("from the middle: %s", names(middle))
		}
	})
}

// A journal shows nothing that its mode does not keep, by none of the ways to read it.
func TestModes(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		program := harness.Program{Code: "print('sec' + 'ret')\nprint(await ask(secret=1))", Tools: harness.Tools("ask")}
		for mode, events := range map[string]string{
			"calls": "execution.started call.started execution.paused execution.resumed call.completed execution.ended", "off": "",
		} {
			c := harness.Serve(t, s, harness.Settings{"JOURNAL": mode}).Alice()
			stream := open(t, c, http.MethodPost, harness.Programmatic, nil, program)
			id := stream.response.Header.Get("Fermata-Execution")
			first := stream.liveAnswer(t)
			second := run(t, c, first.Continue(harness.Value(`"secret"`)))
			if second.Stdout != "secret\nsecret\n" {
				t.Errorf("%s: the answer is %s", mode, second.Body)
			}
			if got := names(append(first.Events, second.Events...)); got != events {
				t.Errorf("%s: live answers have %s, want %s", mode, got, events)
			}
			for _, f := range append(first.Events, second.Events...) {
				if strings.Contains(string(f.Data), "secret") {
					t.Errorf("%s: %s", mode, f.Data)
				}
			}
			path := "/executions/" + id
			for _, way := range []struct{ path, accept string }{
				{"", ""}, {"/events", "application/json"}, {"/events", ndjson}, {"/events", eventStream}, {"/events?view=tool_calls", eventStream}, {"/calls", ""},
			} {
				status, _, body := get(t, c, http.MethodGet, path+way.path, accepting(way.accept))
				if want := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[mode == "calls" || way.path == ""]; status != want || strings.Contains(body, "secret") {
					t.Errorf("%s: GET %s as %s: got %d %s, want %d", mode, way.path, way.accept, status, body, want)
				}
			}
			for _, path := range []string{"/executions", "/calls"} {
				_, _, body := get(t, c, http.MethodGet, path, nil)
				if strings.Contains(body, "secret") || strings.Contains(body, id) != (mode == "calls" || path == "/executions") {
					t.Errorf("%s: GET %s: %s", mode, path, body)
				}
			}
		}
	})
}
