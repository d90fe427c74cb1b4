package toolsets

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/tests/harness"
)

// fetched asks for a path and returns the answer, which must have this status.
func fetched(t *testing.T, c harness.Client, path string, status int) harness.Answer {
	t.Helper()
	a, err := c.Request(t.Context(), http.MethodGet, path, nil, nil)
	if err != nil || a.HTTPStatus != status {
		t.Fatalf("GET %s: got %d %.300s, %v, want %d", path, a.HTTPStatus, a.Raw, err, status)
	}
	return a
}

// textAt returns an answer that is a text, and its header.
func textAt(t *testing.T, c harness.Client, path string) (string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	c.Authorize(r)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/") {
		t.Fatalf("GET %s: got %d %v, %v, want a text", path, answer.StatusCode, answer.Header, err)
	}
	return string(text), answer.Header
}

// A listed toolset is what GET /toolsets and exports tell of one.
type listed struct {
	Key, Class, State string
	Tools             []struct {
		Name, Approval, Source string
		Cost                   int
		InputSchema            json.RawMessage `json:"input_schema"`
	}
}

// toolsetsAt returns a list of toolsets by their keys.
func toolsetsAt(t *testing.T, c harness.Client, path string) map[string]listed {
	t.Helper()
	var page struct{ Data []listed }
	if err := json.Unmarshal([]byte(fetched(t, c, path, http.StatusOK).Raw), &page); err != nil || page.Data == nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	all := map[string]listed{}
	for _, l := range page.Data {
		all[l.Key] = l
	}
	return all
}

// TestRoutesOfToolsets reads all that a server tells of its toolsets, under a policy.
func TestRoutesOfToolsets(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		d := standard(t, s, harness.Settings{"TOOLSETS_BLOCK": "trouble,desk.hold"})
		list := toolsetsAt(t, d.Client, "/v1/toolsets")
		if _, blocked := list["trouble"]; blocked || len(list) != 2 || list["weather"].State != "ready" || len(list["weather"].Tools) != 4 {
			t.Errorf("the list has %+v, want weather with 4 tools, and desk", list)
		}
		for _, tool := range list["desk"].Tools {
			if tool.Name == "hold" || tool.Source != "http" || (tool.Name == "pay") != (tool.Approval == "always") || tool.Name == "book" && tool.Cost != 3 {
				t.Errorf("the list has the tool %+v", tool)
			}
		}
		for _, path := range []string{
			"/toolsets/export?keys=weather.current,desk", "/v1/tool/toolset/exportDefinitions?toolsetKeys=weather.current,desk",
			"/toolsets/export?toolsetKeys=weather.current,desk", "/tool/toolset/exportDefinitions?keys=weather.current,desk",
		} {
			exported := toolsetsAt(t, d.Client, path)
			w := exported["weather"]
			if len(exported) != 2 || w.Class != "Weather" || w.State != "ready" || len(w.Tools) != 1 || !strings.Contains(string(w.Tools[0].InputSchema), `"city"`) {
				t.Errorf("GET %s: got %+v, want the tool weather.current and desk", path, exported)
			}
		}
		for path, wants := range map[string][]string{
			"/toolsets/weather/stub":                        {"class Weather", "def current("},
			"/toolsets/weather/stub?lang=bash":              {"weather_current()"},
			"/v1/toolsets/weather/docs":                     {"current"},
			"/toolsets/prompt?keys=weather":                 {"from fermata_tools.", "at the same time"},
			"/toolsets/prompt?keys=weather&sequential=true": {"one call at a time"},
		} {
			text, header := textAt(t, d.Client, path)
			for _, want := range wants {
				if !strings.Contains(text, want) || strings.Contains(text, harness.UpstreamSecret) {
					t.Errorf("GET %s: got %.2000s, want %s in it, and no secret", path, text, want)
				}
			}
			if got := header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("GET %s: Cache-Control is %q, want no-store", path, got)
			}
		}
		for path, want := range map[string]int{
			"/toolsets/maps/stub":                         http.StatusNotFound,
			"/toolsets/Weather/docs":                      http.StatusNotFound,
			"/toolsets/trouble/docs":                      http.StatusForbidden,
			"/toolsets/weather/stub?lang=perl":            http.StatusBadRequest,
			"/toolsets/export?keys=maps":                  http.StatusBadRequest,
			"/toolsets/export?keys=":                      http.StatusBadRequest,
			"/toolsets/export?keys=desk&toolsetKeys=desk": http.StatusBadRequest,
			"/toolsets/export?keys=desk.hold":             http.StatusForbidden,
			"/toolsets/prompt?keys=weather,":              http.StatusBadRequest,
			"/toolsets?limit=0":                           http.StatusBadRequest,
			"/toolsets?limit=201":                         http.StatusBadRequest,
			"/toolsets?limit=1&limit=2":                   http.StatusBadRequest,
			"/toolsets?limit=%2B1":                        http.StatusBadRequest,
			"/toolsets?after=Desk":                        http.StatusBadRequest,
		} {
			fetched(t, d.Client, path, want)
		}
		stranger := harness.Client{URL: d.server.URL, Key: "wrong"}
		fetched(t, stranger, "/toolsets", http.StatusUnauthorized)
	})
}

// TestPagesOfToolsets reads the list of toolsets page by page.
func TestPagesOfToolsets(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		d := standard(t, s, harness.Settings{"TOOLSETS_BLOCK": "desk.hold"})
		for path, want := range map[string]string{
			"/toolsets":                     "desk trouble weather, then null",
			"/toolsets?limit=3":             "desk trouble weather, then null",
			"/toolsets?limit=2":             `desk trouble, then "trouble"`,
			"/toolsets?limit=2&after=desk":  "trouble weather, then null",
			"/toolsets?limit=1&after=desk":  `trouble, then "trouble"`,
			"/toolsets?after=earlier":       "trouble weather, then null", // It was removed since.
			"/v1/toolsets?after=weather":    ", then null",
			"/v1/toolsets?limit=200&after=": "400",
		} {
			if want == "400" {
				fetched(t, d.Client, path, http.StatusBadRequest)
				continue
			}
			var page struct {
				Data []listed
				Next json.RawMessage
			}
			if err := json.Unmarshal([]byte(fetched(t, d.Client, path, http.StatusOK).Raw), &page); err != nil {
				t.Fatal(err)
			}
			var keys []string
			for _, one := range page.Data {
				keys = append(keys, one.Key)
			}
			if got := strings.Join(keys, " ") + ", then " + string(page.Next); got != want {
				t.Errorf("GET %s: got %s, want %s", path, got, want)
			}
		}
	})
}

// TestWithoutToolsets asks a server that has no toolsets.
func TestWithoutToolsets(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		if list := toolsetsAt(t, c, "/toolsets"); len(list) != 0 {
			t.Errorf("the list has %+v, want nothing", list)
		}
		fetched(t, c, "/toolsets/weather/stub", http.StatusNotFound)
		fetched(t, c, "/toolsets/prompt", http.StatusNotFound)
		execute(t, c, nil, `{"toolset":"weather","tool":"current"}`, http.StatusBadRequest)
	})
}

// An executed call is the answer to a request for one call.
type executed struct {
	OK     bool
	CallID string `json:"call_id"`
	Output json.RawMessage
	Error  string
	Cost   int
}

// execute sends a request for one call, whose answer must have this status.
func execute(t *testing.T, c harness.Client, header http.Header, body string, status int) (e executed, a harness.Answer) {
	t.Helper()
	a, err := c.Request(t.Context(), http.MethodPost, "/tools/execute", header, json.RawMessage(body))
	if err != nil || a.HTTPStatus != status {
		t.Fatalf("POST /tools/execute %s: got %d %.300s, %v, want %d", body, a.HTTPStatus, a.Raw, err, status)
	}
	if err := json.Unmarshal([]byte(a.Raw), &e); status == http.StatusOK && err != nil {
		t.Fatalf("POST /tools/execute %s: %v", body, err)
	}
	return e, a
}

// TestCallMark looks at the names of records without colons, of calls of programs and of others.
func TestCallMark(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		d := standard(t, s, harness.Settings{"CALL_MARK": "underscore"})
		key := harness.NewKey()
		alone, _ := execute(t, d.Client, nil, fmt.Sprintf(`{"toolset":"desk","tool":"book","input":{"key":%q,"n":1}}`, key), http.StatusOK)
		parented, _ := execute(t, d.Client, http.Header{"X-Ptc-Call-Id": {key}}, fmt.Sprintf(`{"toolset":"desk","tool":"book","input":{"key":%q,"n":1}}`, key), http.StatusOK)
		if !strings.HasPrefix(alone.CallID, "standalone_") || !strings.HasPrefix(parented.CallID, "ptc_") {
			t.Errorf("the calls are named %s and %s, want standalone_ and ptc_", alone.CallID, parented.CallID)
		}
		if raw := fetched(t, d.Client, "/calls?parent_call_id="+key, http.StatusOK).Raw; !strings.Contains(raw, `"type":"ptc"`) || !strings.Contains(raw, `"`+parented.CallID+`"`) {
			t.Errorf("the records of the calls of a parent are %s", raw)
		}
		paused := d.Pause(t, harness.Program{Code: "await one()", Tools: harness.Tools("one")})
		ended := d.Post(t, paused.Continue(harness.Echo))
		if raw := fetched(t, d.Client, "/executions/"+ended.Header.Get("Fermata-Execution")+"/calls", http.StatusOK).Raw; strings.Count(raw, `"call_id":"ptc_`) != 1 {
			t.Errorf("the records of the calls of a program are %s", raw)
		}
	})
}

// TestExecute calls tools without a program, and looks at the records of the calls.
func TestExecute(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		d := standard(t, s, nil)
		key := harness.NewKey()
		done, a := execute(t, d.Client, nil, fmt.Sprintf(`{"toolset":"desk","tool":"book","input":{"key":%q,"n":1}}`, key), http.StatusOK)
		if !done.OK || done.Cost != 3 || !strings.HasPrefix(done.CallID, "standalone:") || !strings.Contains(string(done.Output), key) {
			t.Errorf("a call: got %s, want its output for 3 credits", a.Raw)
		}
		d.upstream.Sent(t, key, 1)
		parent := http.Header{"X-Ptc-Call-Id": {key}}
		done, _ = execute(t, d.Client, parent, fmt.Sprintf(`{"toolsetKey":"desk","toolName":"program","params":{"key":%q}}`, key), http.StatusOK)
		if !done.OK || !strings.HasPrefix(done.CallID, "ptc:") {
			t.Errorf("a call with a parent: got %+v, want one that is named ptc:", done)
		}
		if _, a := execute(t, d.Client, nil, `{"toolset":"trouble","tool":"get","input":{"kind":"nothing"}}`, http.StatusOK); !strings.Contains(a.Raw, `"ok":true`) || !strings.Contains(a.Raw, `"output":null`) {
			t.Errorf("a call with an empty answer: got %s, want the output null", a.Raw)
		}
		for input, want := range map[string]string{`{"n":"x","key":"k"}`: "n", `{}`: "key", `{"key":"k","kee":1}`: `has "kee", which is not known`} {
			if done, _ := execute(t, d.Client, nil, `{"toolset":"desk","tool":"book","input":`+input+`}`, http.StatusOK); done.OK || !strings.Contains(done.Error, want) {
				t.Errorf("the input %s: got %+v, want a failed call that names %s", input, done, want)
			}
		}
		for body, status := range map[string]int{
			`{"toolset":"maps","tool":"current"}`:                      http.StatusBadRequest,
			`{"toolset":"desk","tool":"Book"}`:                         http.StatusBadRequest,
			`{"toolset":"desk"}`:                                       http.StatusBadRequest,
			`{"toolset":5,"tool":"book"}`:                              http.StatusBadRequest,
			`{"toolset":"desk","tool":"book","input":[]}`:              http.StatusBadRequest,
			`{"toolset":"desk","toolsetKey":"desk","tool":"book"}`:     http.StatusBadRequest,
			`{"toolset":"desk","tool":"book","arguments":{"key":"k"}}`: http.StatusBadRequest,
			`{"toolset":"desk","tool":"pay","input":{"key":"k"}}`:      http.StatusForbidden,
			`{"toolset":"desk","tool":"program","input":{"key":"k"}}`:  http.StatusForbidden,
		} {
			execute(t, d.Client, nil, body, status)
		}
		execute(t, d.Client, http.Header{"X-Ptc-Call-Id": {"a b"}}, `{"toolset":"desk","tool":"book"}`, http.StatusBadRequest)

		id := a.Header.Get("Fermata-Execution")
		if raw := fetched(t, d.Client, "/executions?limit=200", http.StatusOK).Raw; strings.Contains(raw, id) {
			t.Errorf("the list of executions has the call, want it only if it is asked for")
		}
		if raw := fetched(t, d.Client, "/executions?contract=tool&limit=200", http.StatusOK).Raw; !strings.Contains(raw, id) {
			t.Errorf("the list of calls without a program lacks %s: %.300s", id, raw)
		}
		if raw := fetched(t, d.Client, "/executions/"+id+"/calls", http.StatusOK).Raw; !strings.Contains(raw, `"type":"standalone"`) || !strings.Contains(raw, `"cost":3`) {
			t.Errorf("the record of the call is %s", raw)
		}
		fetched(t, d.Client, "/executions/"+id, http.StatusOK)
		fetched(t, d.server.Bob(), "/executions/"+id, http.StatusNotFound)
		if raw := fetched(t, d.Client, "/calls?parent_call_id="+key, http.StatusOK).Raw; !strings.Contains(raw, `"type":"ptc"`) || !strings.Contains(raw, `"ptc_call_id":"`+key+`"`) {
			t.Errorf("the records of the calls of a parent are %s", raw)
		}
		var events struct {
			Data []struct{ Type string }
		}
		if err := json.Unmarshal([]byte(fetched(t, d.Client, "/executions/"+id+"/events", http.StatusOK).Raw), &events); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(events.Data); got != "[{execution.started} {call.started} {call.completed} {execution.ended}]" {
			t.Errorf("the events are %s", got)
		}
	})
}

// TestExecuteShare has as many calls under way as a client may have, and makes one more.
func TestExecuteShare(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		const most = 64
		d := alone(t, s, nil)
		key := harness.NewKey()
		body := fmt.Sprintf(`{"toolset":"desk","tool":"hold","input":{"key":%q}}`, key)
		var calling sync.WaitGroup
		defer calling.Wait()
		for range most {
			calling.Go(func() {
				a, err := d.Request(t.Context(), http.MethodPost, "/tools/execute", nil, json.RawMessage(body))
				if err != nil || a.HTTPStatus != http.StatusOK || !strings.Contains(a.Raw, `"ok":true`) {
					t.Errorf("a call within the share: got %v, %v, want a result", a, err)
				}
			})
		}
		defer d.upstream.Release(key)
		d.upstream.Await(t, key, most)
		_, a := execute(t, d.Client, nil, body, http.StatusTooManyRequests)
		harness.Contains(t, "the answer", a.Raw, "rate_limited", "a client may have 64 without a program")
		if got := a.Header.Get("Retry-After"); got != "1" {
			t.Errorf("Retry-After is %q, want 1", got)
		}
		execute(t, d.server.Bob(), nil, `{"toolset":"weather","tool":"current","input":{"city":"Rome"}}`, http.StatusOK)
	})
}

// TestExecuteKilled kills a server while a call runs: it is recorded as one of which nobody knows
// whether it took effect, and is not made again.
func TestExecuteKilled(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		d := alone(t, s, nil)
		key := harness.NewKey()
		left, client := make(chan struct{}), d.Client
		go func() {
			defer close(left)
			_, _ = client.Request(t.Context(), http.MethodPost, "/tools/execute", http.Header{"X-Ptc-Call-Id": {key}},
				json.RawMessage(fmt.Sprintf(`{"toolset":"desk","tool":"hold","input":{"key":%q}}`, key)))
		}()
		d.upstream.Await(t, key, 1)
		d.restart(t)
		<-left
		d.upstream.Release(key)
		for i := 0; ; i++ {
			raw := fetched(t, d.Client, "/calls?parent_call_id="+key, http.StatusOK).Raw
			if strings.Contains(raw, "whether it took effect is unknown") && strings.Contains(raw, `"status":"failed"`) {
				break
			}
			if i == 100 {
				t.Fatalf("the records are %s, want a failed call", raw)
			}
			time.Sleep(100 * time.Millisecond)
		}
		d.upstream.Sent(t, key, 1)
	})
}
