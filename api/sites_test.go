package api_test

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/api/auth"
)

// newSite returns a server with one route of each method. observed gets its metrics.
func newSite(open bool, origins []string, observed *[]string) *api.Router {
	r := api.New(api.Options{
		Auth: auth.New([]auth.Key{{Name: "ada", Key: "good-key"}}, nil), Open: open, Hosts: []string{"Fermata.example"}, Origins: origins,
		Log: slog.New(slog.DiscardHandler),
		Observe: func(route, method string, status int, _ time.Duration) {
			*observed = append(*observed, fmt.Sprint(method, " ", route, " ", status))
		},
	})
	answer := func(c echo.Context) error { return api.Answer(c, http.StatusOK, api.PrincipalOf(c).ID) }
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		r.Handle(method, "/things/:id", answer, r.Needs(api.Use))
	}
	r.Health("v1")
	return r
}

// ask sends a request with a good key to a host.
func ask(t *testing.T, h http.Handler, method, host, path string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	r.Host = host
	r.Header.Set("X-API-Key", "good-key")
	maps.Copy(r.Header, header)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const ours = "fermata.example:8000"

// TestOrigins sends what browsers send for their pages, in both modes, to all sorts of routes.
func TestOrigins(t *testing.T) {
	const own, friend, evil = "https://" + ours, "https://friend.example", "https://evil.example"
	all := []string{"GET", "POST", "DELETE", "OPTIONS"}
	for _, c := range []struct {
		name    string
		origin  string
		site    string
		refused []string // methods
	}{
		{"no browser", "", "", nil},
		{"a page of ours", own, "same-origin", nil},
		{"a page of ours that reads", "", "same-origin", nil},
		{"a page of ours, by HTTP", "http://" + ours, "", nil},
		{"a page of ours, behind a proxy that changes the Host", "https://public.example", "same-origin", nil},
		{"a person", "", "none", nil},
		{"a friend", friend, "cross-site", nil},
		{"a friend in an old browser", friend, "", nil},
		{"another site", evil, "cross-site", all},
		{"another site in an old browser", evil, "", all},
		{"another site whose request has no origin", "", "cross-site", all},
		{"a page in a sandbox", "null", "cross-site", all},
		{"a file", "null", "", all},
		{"another port", "https://fermata.example:3000", "same-site", all},
		{"another port in an old browser", "https://fermata.example:3000", "", all},
		{"a neighbour's link", "", "same-site", []string{"POST", "DELETE", "OPTIONS"}},
		{"an extension", "chrome-extension://abcdef", "none", all},
		{"our name in another one", "https://fermata.example:8000.evil.example", "cross-site", all},
		{"a friend's name in another one", friend + ".evil.example", "cross-site", all},
		{"a friend without TLS", "http://friend.example", "cross-site", all},
		{"a friend's other port", friend + ":8443", "cross-site", all},
		{"a friend in capitals", "https://FRIEND.example", "cross-site", all},
		{"two origins", friend + ", " + evil, "cross-site", all},
		{"no origin at all", "%", "", all},
		{"a word that browsers may invent", "", "cross-planet", all},
	} {
		for _, open := range []bool{false, true} {
			var observed []string
			r := newSite(open, []string{friend, "http://localhost:3000"}, &observed)
			for _, method := range all {
				for _, path := range []string{"/things/1", "/health", "/nowhere", "/things/1/very-secret"} {
					header := http.Header{}
					if c.origin != "" {
						header.Set("Origin", c.origin)
					}
					if c.site != "" {
						header.Set("Sec-Fetch-Site", c.site)
					}
					w := ask(t, r, method, ours, path, header)
					if refused := w.Code == http.StatusForbidden; refused != slices.Contains(c.refused, method) {
						t.Errorf("%s, open %t: %s %s: got %d %s, refused should be %t", c.name, open, method, path, w.Code, w.Body, !refused)
					}
					cors := c.origin == friend
					for name, values := range w.Header() {
						if strings.HasPrefix(name, "Access-Control-") && !cors {
							t.Errorf("%s: %s %s: the answer has %s: %s", c.name, method, path, name, values)
						}
					}
					if cors && (w.Header().Get("Access-Control-Allow-Origin") != friend || w.Header().Get("Access-Control-Expose-Headers") != "Fermata-Execution" ||
						w.Header().Get("Access-Control-Allow-Credentials") != "") {
						t.Errorf("%s: %s %s: got the headers %v, want those of a friend", c.name, method, path, w.Header())
					}
					if got := w.Header().Values("Vary"); !slices.Equal(got, []string{"Origin"}) {
						t.Errorf("%s: %s %s: Vary is %q, want Origin", c.name, method, path, got)
					}
				}
			}
			if slices.ContainsFunc(observed, func(o string) bool { return strings.Contains(o, "nowhere") || strings.Contains(o, "secret") }) {
				t.Errorf("%s: observed %q, want nothing that a client has chosen", c.name, observed)
			}
		}
	}
}

// A refusal comes before everything else: it does not tell whether a key is good or a path exists.
func TestForeignPagesLearnNothing(t *testing.T) {
	var observed []string
	r := newSite(false, nil, &observed)
	seen := map[string]bool{}
	for _, path := range []string{"/things/1", "/nowhere", "/health"} {
		for _, key := range []string{"good-key", "wrong", ""} {
			for _, method := range []string{"GET", "POST", "PUT", "OPTIONS"} {
				w := ask(t, r, method, ours, path, http.Header{"Origin": {"https://evil.example"}, "X-Api-Key": {key}})
				w.Header().Del("X-Request-Id")
				seen[fmt.Sprint(w.Code, w.Header(), w.Body)] = true
			}
		}
	}
	if len(seen) != 1 {
		t.Errorf("got %d different answers, want one: %v", len(seen), seen)
	}
}

// TestPreflights asks what a browser asks before it sends a page's request.
func TestPreflights(t *testing.T) {
	const friend = "http://localhost:3000"
	for _, open := range []bool{false, true} {
		var observed []string
		r := newSite(open, []string{friend}, &observed)
		preflight := http.Header{
			"Origin": {friend}, "Sec-Fetch-Site": {"cross-site"}, "X-Api-Key": nil,
			"Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"authorization,content-type"},
		}
		for _, path := range []string{"/things/1", "/nowhere"} {
			w := ask(t, r, http.MethodOptions, ours, path, preflight)
			if w.Code != http.StatusNoContent || w.Body.Len() != 0 {
				t.Errorf("open %t, %s: got %d %q, want 204", open, path, w.Code, w.Body)
			}
			for name, want := range map[string]string{
				"Access-Control-Allow-Origin":      friend,
				"Access-Control-Allow-Methods":     "GET, HEAD, POST, DELETE",
				"Access-Control-Allow-Headers":     "authorization, x-api-key, content-type, last-event-id, idempotency-key, x-request-id, x-ptc-call-id",
				"Access-Control-Max-Age":           "600",
				"Access-Control-Allow-Credentials": "",
				"Vary":                             "Origin",
			} {
				if got := w.Header().Get(name); got != want {
					t.Errorf("open %t, %s: %s is %q, want %q", open, path, name, got, want)
				}
			}
		}
		preflight["Origin"] = []string{"https://evil.example"}
		if w := ask(t, r, http.MethodOptions, ours, "/things/1", preflight); w.Code != http.StatusForbidden || w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("open %t: another origin got %d %v, want 403", open, w.Code, w.Header())
		}
	}
}

// A friend's page needs a key like everyone else.
func TestFriendsNeedKeys(t *testing.T) {
	var observed []string
	r := newSite(false, []string{"https://friend.example"}, &observed)
	w := ask(t, r, http.MethodPost, ours, "/things/1", http.Header{"Origin": {"https://friend.example"}, "X-Api-Key": {"wrong"}})
	if w.Code != http.StatusUnauthorized || w.Header().Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("got %d %v, want 401 that the page can read", w.Code, w.Header())
	}
}

// Only an open server looks at the name by which it is called, on all its routes.
func TestHosts(t *testing.T) {
	for host, known := range map[string]bool{
		"fermata.example": true, "FERMATA.example:1": true, "10.1.2.3": true, "[::1]:8000": true, "localhost:8000": true,
		"rebound.example": false, "127.0.0.1.rebound.example": false, "localhost.rebound.example": false, "a b": false, "": false,
	} {
		for _, open := range []bool{false, true} {
			var observed []string
			r := newSite(open, nil, &observed)
			for _, path := range []string{"/things/1", "/health", "/nowhere"} {
				w := ask(t, r, http.MethodGet, host, path, nil)
				if refused := w.Code == http.StatusForbidden; refused != (open && !known) {
					t.Errorf("host %q, open %t, %s: got %d %s, refused should be %t", host, open, path, w.Code, w.Body, open && !known)
				}
			}
		}
	}
}

// All answers have the headers that protect them in browsers, whatever they are.
func TestProtection(t *testing.T) {
	var observed []string
	r := newSite(true, nil, &observed)
	for name, w := range map[string]*httptest.ResponseRecorder{
		"an answer":        ask(t, r, http.MethodGet, ours, "/things/1", nil),
		"no route":         ask(t, r, http.MethodGet, ours, "/nowhere", nil),
		"no method":        ask(t, r, "PUT", ours, "/things/1", nil),
		"a foreign host":   ask(t, r, http.MethodGet, "evil.example", "/things/1", nil),
		"a foreign origin": ask(t, r, http.MethodGet, ours, "/things/1", http.Header{"Origin": {"https://evil.example"}}),
	} {
		for header, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Vary": "",
		} {
			if got := w.Header().Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
	}
}

func TestCheckOrigin(t *testing.T) {
	for origin, good := range map[string]bool{
		"https://a.example": true, "http://localhost:3000": true, "https://[::1]:8443": true, "http://10.0.0.1": true, "https://xn--bcher-kva.example": true,
		"": false, "*": false, "null": false, "a.example": false, "https://a.example/": false, "https://a.example/x": false, "https://": false,
		"https://a.example:443": false, "http://a.example:80": false, "https://a.example:": false, "https://A.example": false, "HTTPS://a.example": false,
		"https://u@a.example": false, "https://a.example?": false, "https://a.example#": false, "https://bücher.example": false,
		"https://*.a.example": false, "ftp://a.example": false, " https://a.example": false, "https://a.example https://b.example": false,
	} {
		if err := api.CheckOrigin(origin); (err == nil) != good {
			t.Errorf("CheckOrigin(%q) = %v, good should be %t", origin, err, good)
		}
	}
}
