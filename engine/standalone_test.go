package engine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
	"fermata/engine/sandbox/sandboxtest"
	"fermata/engine/tools/host"
	"fermata/engine/tools/policy"
)

// toolsetsFile describes the tools of serving.
const toolsetsFile = `
toolsets:
  weather:
    title: Weather
    private: true
    http:
      base_url: URL
      tools:
        - {name: current, method: GET, path: "/current/{city}", cost: 3, parameters: {type: object, properties: {city: {type: string}}, required: [city]}}
        - {name: order, method: POST, path: /order, approval: always}
        - {name: inside, method: GET, path: /inside, callers: [code]}
        - {name: outside, method: GET, path: /outside, callers: [direct]}
        - {name: dear, method: GET, path: /dear, cost: 11}
policies: {thrifty: {max_cost: 10}}
principals: {ada: thrifty}
`

// serving returns the toolsets of a server whose tools are answered by endpoint.
func serving(t *testing.T, settings policy.Settings, endpoint http.HandlerFunc) *host.Host {
	t.Helper()
	server := httptest.NewServer(endpoint)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "toolsets.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(toolsetsFile, "URL", server.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(t.Context(), host.Options{Path: path, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// newCaller returns an engine that is closed after the test.
func newCaller(t *testing.T, change func(*Options)) *Engine {
	t.Helper()
	o := stickyOptions(t, sandboxtest.New("home.2"), t.Output())
	change(&o)
	e := newTalker(t, o)
	t.Cleanup(func() { closing(t, e) })
	return e
}

// ask is a call that succeeds.
func ask(tool, input string) ToolCall {
	return ToolCall{Principal: "ada", Toolset: "weather", Tool: tool, Input: json.RawMessage(input)}
}

func TestCallTool(t *testing.T) {
	var store continuation.Store
	var id string
	var written []string
	used := map[string]int64{}
	h := serving(t, policy.Settings{}, func(w http.ResponseWriter, r *http.Request) {
		written = append(written, r.URL.Path+" after "+strings.Join(tell(t, store, id).events, ", "))
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/current/Nowhere" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(`{"sky":"blue"}`))
	})
	e := newCaller(t, func(o *Options) {
		o.Toolsets, o.Used = h, func(principal, toolset string, cost int64) { used[principal+" "+toolset] += cost }
	})
	store = e.o.Store
	began := func(execution string) { id = execution }

	c := ask("current", `{"city":"Paris"}`)
	c.Began = began
	got, err := e.CallTool(t.Context(), c)
	if err != nil || string(got.Output) != `{"sky":"blue"}` || got.Error != "" || got.Cost != 3 || !strings.HasPrefix(got.ID, "standalone:") {
		t.Errorf("a call: got %+v, %v, want the sky for 3 credits", got, err)
	}
	if want := "/current/Paris after execution.started, call.started call_001"; len(written) != 1 || written[0] != want {
		t.Errorf("the endpoint saw %q, want %q", written, want)
	}
	tell(t, store, id).is(t, core.Outcome{}, "execution.started", "call.started call_001", "call.completed call_001", "execution.ended completed")

	c = ask("current", `{"city":"Nowhere"}`)
	c.Began, c.Parent = began, "outer"
	got, err = e.CallTool(t.Context(), c)
	if err != nil || got.Output != nil || got.Error == "" || got.Cost != 0 || !strings.HasPrefix(got.ID, "ptc:") {
		t.Errorf("a call that fails: got %+v, %v, want an error", got, err)
	}
	tell(t, store, id).is(t, core.Outcome{}, "execution.started", "call.started call_001", "call.failed call_001", "execution.ended error")
	if used["ada weather"] != 3 {
		t.Errorf("used %v, want 3 credits of one call", used)
	}

	sent := len(written)
	for input, want := range map[string]string{
		`{"city":5}`: "city", `{}`: "city", `[]`: "object", `{"city":"..\/x"}`: "",
	} {
		c := ask("current", input)
		c.Began = began
		if got, err := e.CallTool(t.Context(), c); err != nil || !strings.Contains(got.Error, want) {
			t.Errorf("the input %s: got %+v, %v, want a failed call that names %s", input, got, err, want)
		}
	}
	if got, err := e.CallTool(t.Context(), ask("dear", `{}`)); err != nil || got.Error != "the call costs 11, and max_cost of the principal's policy is 10" {
		t.Errorf("a call beyond max_cost: got %+v, %v, want a failed call", got, err)
	}
	for tool, parent := range map[string]string{"inside": "outer", "outside": ""} {
		c := ask(tool, `{}`)
		c.Parent, c.Began = parent, began
		if got, err := e.CallTool(t.Context(), c); err != nil || got.Error != "" {
			t.Errorf("the tool %s: got %+v, %v, want a result", tool, got, err)
		}
	}
	if n := len(written) - sent; n != 2 {
		t.Errorf("the endpoint was asked %d times since, want twice: %q", n, written[sent:])
	}

	if calls := e.Stats().Calls; calls["completed"] != 3 || calls["failed"] != 6 {
		t.Errorf("the figures of calls are %v, want 3 completed and 6 failed", calls)
	}

	history := journal.NewHistory(store, e.EndForgotten)
	ada := journal.Viewer{Principal: "ada"}
	for contract, want := range map[string]int{"": 0, "tool": 9} {
		list, _, err := history.List(t.Context(), ada, journal.Filter{Contract: contract}, continuation.Place{}, 100)
		if err != nil || len(list) != want {
			t.Errorf("the list of executions with contract=%s has %d, %v, want %d", contract, len(list), err, want)
		}
	}
	records, _, err := history.Calls(t.Context(), ada, journal.CallFilter{Toolset: "weather", Tool: "current", Status: "completed"}, journal.CallPlace{}, 100)
	if err != nil || len(records) != 1 || records[0].Type != "standalone" || records[0].Cost != 3 || records[0].Runner != "server" || records[0].Parent != nil {
		t.Errorf("the records of calls are %+v, %v, want one", records, err)
	}
	records, _, err = history.Calls(t.Context(), ada, journal.CallFilter{Parent: "outer", Status: "failed"}, journal.CallPlace{}, 100)
	if err != nil || len(records) != 1 || records[0].Type != "ptc" || *records[0].Parent != "outer" {
		t.Errorf("the records of calls of a parent are %+v, %v, want one", records, err)
	}
}

func TestCallToolRefusals(t *testing.T) {
	h := serving(t, policy.Settings{Block: []string{"weather.dear"}}, func(http.ResponseWriter, *http.Request) {
		t.Error("the endpoint was asked")
	})
	e := newCaller(t, func(o *Options) { o.Toolsets = h })
	for _, c := range []struct{ toolset, tool, parent, want string }{
		{"maps", "current", "", `there is no toolset "maps"`},
		{"weather", "Current", "", `the toolset weather has no tool "Current"`},
		{"weather", "dear", "", "the tool weather.dear may not be used: FERMATA_TOOLSETS_BLOCK blocks it"},
		{"weather", "order", "", "the tool weather.order may not be used: it needs approval, for which only a program can wait"},
		{"weather", "inside", "", "the tool weather.inside may not be used: its callers do not include direct, which is for calls that no program makes"},
		{"weather", "outside", "outer", "the tool weather.outside may not be used: its callers do not include code, which is for calls that programs make"},
	} {
		began := func(string) { t.Errorf("%s.%s has begun", c.toolset, c.tool) }
		_, err := e.CallTool(t.Context(), ToolCall{Principal: "ada", Toolset: c.toolset, Tool: c.tool, Parent: c.parent, Began: began})
		_, unknown := errors.AsType[*policy.UnknownError](err)
		if _, refused := errors.AsType[*policy.Refusal](err); !unknown && !refused || err.Error() != c.want {
			t.Errorf("%s.%s: got %v, want %s", c.toolset, c.tool, err, c.want)
		}
	}
	none := newCaller(t, func(*Options) {})
	if _, err := none.CallTool(t.Context(), ask("current", `{}`)); err == nil || err.Error() != `there is no toolset "weather"` {
		t.Errorf("without toolsets: got %v, want that there is none", err)
	}
}

// TestCallToolCancelled ends calls that hang: by the id of their execution, by the client that leaves,
// and by the end of the server.
func TestCallToolCancelled(t *testing.T) {
	asked := make(chan struct{}, 1)
	h := serving(t, policy.Settings{}, func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	e := newCaller(t, func(o *Options) { o.Toolsets = h })
	var leave context.CancelFunc // of the client of the call that runs
	for name, end := range map[string]func(string){
		"by its id": func(id string) {
			if state, err := e.Cancel(t.Context(), Cancel{Principal: "eve", Execution: id}); err != nil || state != CancelUnknown {
				t.Errorf("another principal's Cancel: got %s, %v, want %s", state, err, CancelUnknown)
			}
			if state, err := e.Cancel(t.Context(), Cancel{Principal: "ada", Execution: id}); err != nil || state != CancelRequested {
				t.Errorf("Cancel: got %s, %v, want %s", state, err, CancelRequested)
			}
		},
		"by the client that leaves": func(string) { leave() },
	} {
		var id string
		ctx, cancel := context.WithCancel(t.Context())
		leave = cancel
		c := ask("current", `{"city":"Paris"}`)
		c.Began = func(execution string) { id = execution }
		go func() {
			<-asked
			end(id)
		}()
		got, err := e.CallTool(ctx, c)
		if err != nil || got.Error == "" {
			t.Errorf("%s: got %+v, %v, want a failed call", name, got, err)
		}
		tell(t, e.o.Store, id).is(t, core.Outcome{}, "execution.started", "call.started call_001", "call.failed call_001", "execution.ended cancelled")
		cancel()
	}
	var id string
	c := ask("current", `{"city":"Paris"}`)
	c.Began = func(execution string) { id = execution }
	go func() {
		<-asked
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if got, err := e.CallTool(t.Context(), c); err != nil || got.Error == "" {
		t.Errorf("at the end of the server: got %+v, %v, want a failed call", got, err)
	}
	tell(t, e.o.Store, id).is(t, core.Outcome{}, "execution.started", "call.started call_001", "call.failed call_001", "execution.ended cancelled")
	if _, err := e.CallTool(t.Context(), c); !errors.Is(err, ErrClosing) {
		t.Errorf("after the end of the server: got %v, want %v", err, ErrClosing)
	}
}

// TestCallToolShare makes as many calls without a program as a principal may have, and then one more.
func TestCallToolShare(t *testing.T) {
	asked, over := make(chan struct{}, maxStandalone), make(chan struct{})
	h := serving(t, policy.Settings{}, func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-over:
		case <-r.Context().Done():
		}
	})
	e := newCaller(t, func(o *Options) { o.Toolsets = h })
	var calling sync.WaitGroup
	for range maxStandalone {
		calling.Go(func() {
			if got, err := e.CallTool(t.Context(), ask("current", `{"city":"Paris"}`)); err != nil || got.Error != "" {
				t.Errorf("a call: got %+v, %v, want a result", got, err)
			}
		})
	}
	for range maxStandalone {
		<-asked
	}
	_, err := e.CallTool(t.Context(), ask("current", `{"city":"Paris"}`))
	if many, ok := errors.AsType[*TooManyCallsError](err); !ok || many.Max != maxStandalone {
		t.Errorf("one call more: got %v, want a TooManyCallsError of %d", err, maxStandalone)
	}
	close(over)
	other := ask("current", `{"city":"Paris"}`)
	other.Principal = "bob"
	if got, err := e.CallTool(t.Context(), other); err != nil || got.Error != "" {
		t.Errorf("a call of another principal: got %+v, %v, want a result", got, err)
	}
	calling.Wait()
	if got, err := e.CallTool(t.Context(), ask("current", `{"city":"Paris"}`)); err != nil || got.Error != "" {
		t.Errorf("a call after them: got %+v, %v, want a result", got, err)
	}
	if n := e.quota.Principals(); n != 0 {
		t.Errorf("the quota counts %d principals that have nothing", n)
	}
}

// TestT29DayCost has many calls race for what a principal may spend on a day.
func TestT29DayCost(t *testing.T) {
	var served atomic.Int64
	h := serving(t, policy.Settings{MaxDayCost: new(int64(10))}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/current/Nowhere":
			w.WriteHeader(http.StatusNotFound)
		case "/current/Paris":
			served.Add(1)
		}
	})
	e := newCaller(t, func(o *Options) { o.Toolsets = h })
	for range 5 {
		if got, err := e.CallTool(t.Context(), ask("current", `{"city":"Nowhere"}`)); err != nil || got.Error == "" {
			t.Errorf("a call that fails: got %+v, %v, want a failed call", got, err)
		}
	}
	var calling sync.WaitGroup
	var refused atomic.Int64
	for range 50 {
		calling.Go(func() {
			got, err := e.CallTool(t.Context(), ask("current", `{"city":"Paris"}`))
			if spent, ok := errors.AsType[*SpentError](err); ok {
				refused.Add(1)
				if spent.Cost != 3 || spent.Most != 10 || spent.Spent != 9 || spent.Until != continuation.DayOf(time.Now()).End() {
					t.Errorf("a refusal is %+v", spent)
				}
			} else if err != nil || got.Error != "" {
				t.Errorf("a call: got %+v, %v, want a result or a refusal", got, err)
			}
		})
	}
	calling.Wait()
	if served.Load() != 3 || refused.Load() != 47 {
		t.Errorf("%d calls were made and %d refused, want 3 and 47", served.Load(), refused.Load())
	}
	if got, err := e.CallTool(t.Context(), ask("outside", `{}`)); err != nil || got.Error != "" {
		t.Errorf("a call that costs nothing: got %+v, %v, want a result", got, err)
	}
	other := ask("current", `{"city":"Paris"}`)
	other.Principal = "bob"
	if got, err := e.CallTool(t.Context(), other); err != nil || got.Error != "" {
		t.Errorf("a call of another principal: got %+v, %v, want a result", got, err)
	}
}

// A spendless store cannot count costs.
type spendless struct{ continuation.Store }

func (spendless) Spend(context.Context, continuation.Spending, int64) (int64, bool, error) {
	return 0, false, errors.New("dial tcp 10.1.2.3:6379: connect: connection refused")
}

// TestStoreWithoutCosts makes a call whose cost the store cannot count: it is not made, and the client learns
// nothing of the store.
func TestStoreWithoutCosts(t *testing.T) {
	h := serving(t, policy.Settings{MaxDayCost: new(int64(10))}, func(http.ResponseWriter, *http.Request) {
		t.Error("the call was made")
	})
	e := newCaller(t, func(o *Options) { o.Toolsets, o.Store = h, spendless{o.Store} })
	if got, err := e.CallTool(t.Context(), ask("current", `{"city":"Paris"}`)); err != nil || got.Error != core.TextStoreAway {
		t.Errorf("a call: got %+v, %v, want a failed call that says %q", got, err, core.TextStoreAway)
	}
}

// TestCallToolLost lets a server die while a call runs. The next server records that nobody knows what has
// become of the call.
func TestCallToolLost(t *testing.T) {
	asked, over := make(chan struct{}), make(chan struct{})
	h := serving(t, policy.Settings{}, func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-over
	})
	e := newCaller(t, func(o *Options) { o.Toolsets, o.Instance = h, "home.2" })
	var id string
	c := ask("current", `{"city":"Paris"}`)
	c.Began = func(execution string) { id = execution }
	answered := make(chan ToolResult, 1)
	go func() {
		got, err := e.CallTool(context.Background(), c)
		if err != nil {
			t.Error(err)
		}
		answered <- got
	}()
	<-asked
	record, err := e.o.Store.Get(t.Context(), id)
	if err != nil || len(record.Pending) != 1 || record.Pending[0].Tool != "current" {
		t.Fatalf("the record is %+v, %v, want one with the call", record, err)
	}
	var lines lockedBuffer
	next := newCaller(t, func(o *Options) {
		o.Toolsets, o.Store, o.Instance = h, e.o.Store, "home.3"
		o.Log = slog.New(slog.NewTextHandler(&lines, nil))
	})
	deadline := time.Now().Add(5 * time.Second)
	for {
		s, err := e.o.Store.Summary(t.Context(), id)
		if err == nil && s.Ended {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the next server has not ended the call: %+v, %v", s, err)
		}
		_, _ = next.Cancel(t.Context(), Cancel{Principal: "ada", Execution: id})
		time.Sleep(10 * time.Millisecond)
	}
	events, err := e.o.Store.Events(t.Context(), id, 0, 1<<20)
	if err != nil || len(events) != 4 || !strings.Contains(string(events[2].Content), core.TextRestarted) {
		t.Errorf("the events are %v, %v, want a failed call that tells %s", events, err, core.TextRestarted)
	}
	if said := lines.String(); !strings.Contains(said, "a call without a program is lost") || strings.Contains(said, "cannot take over") {
		t.Errorf("the log says %s, want that a call is lost", said)
	}
	close(over)
	<-answered
}
