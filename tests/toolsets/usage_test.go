package toolsets

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

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

// Without any call there is no usage.
func TestNoUsage(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, usageSettings(t))
		for _, key := range []string{"key-b", "key-of-the-operator"} {
			if got := usageOf(t, harness.Client{URL: server.URL, Key: key}, ""); len(got) != 0 {
				t.Errorf("%s: got %v", key, got)
			}
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
