package toolsets

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// A usage is an entry of GET /usage.
type usage struct {
	Toolset   string `json:"toolset"`
	Day       string `json:"day"`
	Calls     int    `json:"calls"`
	Cost      int    `json:"cost"`
	Principal string `json:"principal"`
}

// usageOf returns the usage that a client sees, in pages of one.
func usageOf(t *testing.T, c harness.Client, query string) (all []usage) {
	t.Helper()
	for after := ""; ; {
		var page struct {
			Data []usage `json:"data"`
			Next *string `json:"next"`
		}
		a, err := c.Request(t.Context(), http.MethodGet, "/usage?limit=1"+query+after, nil, nil)
		if err != nil || a.HTTPStatus != http.StatusOK {
			t.Fatalf("GET /usage: got %v, %v", a, err)
		}
		if got := a.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control is %q, want no-store", got)
		}
		if err := json.Unmarshal([]byte(a.Raw), &page); err != nil || page.Data == nil || len(page.Data) > 1 {
			t.Fatalf("GET /usage: got %v, %v", a, err)
		}
		all = append(all, page.Data...)
		if page.Next == nil {
			return all
		}
		after = "&after=" + *page.Next
	}
}

// usageSettings are those of a server with an operator.
func usageSettings(t *testing.T) harness.Settings {
	t.Helper()
	return harness.With(harness.Toolsets(t), harness.Settings{"API_KEYS": "alice:key-a,bob:key-b", "OPERATOR_KEYS": "watch:key-of-the-operator"})
}

// Successful calls that the server has run are counted for their principal, and no others. They are
// there after a restart, whatever has become of their executions.
func TestUsage(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, usageSettings(t))
		alice := server.Alice()
		if got := usageOf(t, alice, ""); len(got) != 0 {
			t.Fatalf("before any call: got %v", got)
		}
		code := harness.Py(`
			import asyncio
			from fermata_tools.desk import HelpDesk
			from fermata_tools.weather import Weather
			Weather.current(city="Paris")
			for n in range(4):
			    HelpDesk.book(key="usage", n=n)
			try:
			    HelpDesk.lose(key="usage")
			except ToolExecutionError:
			    pass
			await ask()`)
		run := func(c harness.Client) harness.Answer {
			a, _ := c.Run(t, harness.Program{Code: code, Toolsets: []string{"weather", "desk"}, Tools: harness.Tools("ask")}, harness.Value("1"))
			a.Completes(t, "")
			return a
		}
		day := time.Now().UTC().Format(time.DateOnly)
		first := run(alice)
		run(server.Bob())
		run(server.Bob())
		_, _ = alice.Request(t.Context(), http.MethodDelete, "/executions/"+first.Execution(), nil, nil) // What was used stays.

		// It is written within a second or so, and then nothing loses it.
		wants := map[string]string{
			"alice": fmt.Sprint([]usage{{"desk", day, 4, 12, ""}, {"weather", day, 1, 0, ""}}),
			"bob":   fmt.Sprint([]usage{{"desk", day, 8, 24, ""}, {"weather", day, 2, 0, ""}}),
		}
		check := func() error {
			for name, c := range map[string]harness.Client{"alice": server.Alice(), "bob": server.Bob()} {
				if got := fmt.Sprint(usageOf(t, c, "")); got != wants[name] {
					return fmt.Errorf("%s: got %v, want %v", name, got, wants[name])
				}
			}
			return nil
		}
		if err := harness.Within(10*time.Second, check); err != nil {
			t.Fatal(err)
		}
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		if err := check(); err != nil {
			t.Errorf("after a restart: %v", err)
		}
		if time.Now().UTC().Format(time.DateOnly) != day {
			t.Skip("midnight of UTC has come in between")
		}

		bob, operator := server.Bob(), harness.Client{URL: server.URL, Key: "key-of-the-operator"}
		for query, want := range map[string]int{"&since=" + day + "&until=" + day: 2, "&since=" + day: 2, "&until=2026-01-01": 0} {
			if got := usageOf(t, bob, query); len(got) != want {
				t.Errorf("bob%s: got %v, want %d", query, got, want)
			}
		}
		if got := usageOf(t, operator, "&principal=alice"); len(got) != 2 || got[0] != (usage{"desk", day, 4, 12, "alice"}) {
			t.Errorf("the operator on alice: got %v", got)
		}
		if got := usageOf(t, operator, "&principal=nobody"); len(got) != 0 {
			t.Errorf("the operator on nobody: got %v", got)
		}
		all := map[usage]bool{}
		for _, u := range usageOf(t, operator, "") {
			all[u] = true
		}
		if len(all) != 4 || !all[usage{"desk", day, 8, 24, "bob"}] || !all[usage{"weather", day, 1, 0, "alice"}] {
			t.Errorf("the operator: got %v", all)
		}
	})
}

// A bad parameter is refused with its name.
func TestBadUsageParameters(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, usageSettings(t))
		cursor := base64.RawURLEncoding.EncodeToString([]byte(`["2026-11-22","bob","weather"]`))
		odd := base64.RawURLEncoding.EncodeToString([]byte(`["2026-11-22","bob"]`))
		for query, name := range map[string]string{
			"limit=0": "limit", "limit=201": "limit", "limit=": "limit", "limit=%2B1": "limit", "limit=1&limit=2": "limit",
			"since=yesterday": "since", "since=2026-02-30": "since", "until=2026-11-22T10:00:00Z": "until", "until=": "until",
			"since=2026-11-23&until=2026-11-22": "since", "since=2026-11-23&since=2026-11-23": "since",
			"principal=bob": "principal", "after=": "after", "after=x": "after", "after=" + cursor + "%0A": "after", "after=" + odd: "after",
			"after=" + strings.Repeat("A", 10_000): "after", "after=" + cursor + "&after=" + cursor: "after", "after=1;": "malformed",
		} {
			a, err := server.Alice().Request(t.Context(), http.MethodGet, "/v1/usage?"+query, nil, nil)
			if err != nil || a.HTTPStatus != http.StatusBadRequest || !strings.Contains(a.Raw, name) {
				t.Errorf("%s: got %v, %v; want 400 with %s", query, a, err, name)
			}
		}
		// The cursor of another's list shows nothing of that list.
		a, err := server.Alice().Request(t.Context(), http.MethodGet, "/usage?after="+cursor, nil, nil)
		if err != nil || a.HTTPStatus != http.StatusOK || strings.Contains(a.Raw, "bob") {
			t.Errorf("with another's cursor: got %v, %v", a, err)
		}
		operator := harness.Client{URL: server.URL, Key: "key-of-the-operator"}
		a, err = operator.Request(t.Context(), http.MethodGet, "/usage?principal="+strings.Repeat("x", 257), nil, nil)
		if err != nil || a.HTTPStatus != http.StatusBadRequest || !strings.Contains(a.Raw, "principal") {
			t.Errorf("a long principal: got %v, %v", a, err)
		}
		a, err = harness.Client{URL: server.URL, Key: "wrong"}.Request(t.Context(), http.MethodGet, "/usage", nil, nil)
		if err != nil || a.HTTPStatus != http.StatusUnauthorized {
			t.Errorf("without a key: got %v, %v", a, err)
		}
	})
}
