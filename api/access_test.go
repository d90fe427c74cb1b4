package api_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fermata/api"
)

func basic(credentials string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(credentials))
}

func TestAuthentication(t *testing.T) {
	for _, c := range []struct {
		name, key, authorization string
		principal                string
	}{
		{"X-API-Key", "good-key", "", "ada"},
		{"another key", "other-key", "", "bob"},
		{"Bearer", "", "Bearer good-key", "ada"},
		{"bearer in small letters", "", "bearer good-key", "ada"},
		{"ApiKey", "", "ApiKey good-key", "ada"},
		{"APIKEY in capitals", "", "APIKEY  good-key", "ada"},
		{"Basic user", "", basic("good-key:"), "ada"},
		{"Basic user before password", "", basic("good-key:other-key"), "ada"},
		{"Basic without colon", "", basic("good-key"), "ada"},
		{"Basic password", "", basic(":good-key"), "ada"},
		{"two good ones", "good-key", "Bearer other-key", "ada"},
		{"bad Authorization", "good-key", "Bearer wrong", "ada"},
		{"bad X-API-Key", "wrong", "Bearer good-key", "ada"},

		{"none", "", "", ""},
		{"wrong key", "wrong", "", ""},
		{"part of a key", "good-ke", "", ""},
		{"wrong bearer", "", "Bearer wrong", ""},
		{"empty bearer", "", "Bearer ", ""},
		{"no scheme", "", "good-key", ""},
		{"unknown scheme", "", "Digest good-key", ""},
		{"Basic with bad password", "", basic("wrong:good-key"), ""},
		{"Basic not base64", "", "Basic good-key:", ""},
		{"Basic empty", "", basic(":"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := completed()
			w := call{body: `{"code":"#"}`, header: map[string]string{"X-API-Key": c.key, "Authorization": c.authorization}}.do(t, api.New(e, options()))
			if c.principal == "" {
				want(t, w, http.StatusUnauthorized, `{"error":"Invalid or missing API key"}`)
				return
			}
			if w.Code != http.StatusOK || e.starts[0].Principal != c.principal {
				t.Errorf("got %d %s and asked %+v, want 200 for %s", w.Code, w.Body, e.starts, c.principal)
			}
		})
	}
}

func TestEmptyKeysLetNobodyIn(t *testing.T) {
	o := options()
	o.Keys = []api.Key{{Name: "nobody"}}
	w := call{body: `{"code":"#"}`, header: map[string]string{"X-API-Key": ""}}.do(t, api.New(completed(), o))
	if w.Code != http.StatusUnauthorized {
		t.Errorf("got %d %s, want 401", w.Code, w.Body)
	}
}

func TestOpenServerKnowsNobody(t *testing.T) {
	o := options()
	o.Open = true
	for _, key := range []string{"", "good-key", "wrong"} {
		e := completed()
		w := call{body: `{"code":"#"}`, header: map[string]string{"X-API-Key": key}}.do(t, api.New(e, o))
		if w.Code != http.StatusOK || e.starts[0].Principal != "anonymous" {
			t.Errorf("key %q: got %d %s and asked %+v, want 200 for anonymous", key, w.Code, w.Body, e.starts)
		}
	}
}

type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, http.ErrBodyReadAfterClose
}

func TestAuthenticationComesBeforeTheBody(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, unreadable{t})
	w := httptest.NewRecorder()
	api.New(completed(), options()).ServeHTTP(w, r)
	want(t, w, http.StatusUnauthorized, `{"error":"Invalid or missing API key"}`)
}

func TestRouting(t *testing.T) {
	const (
		profile   = "X-CodeAPI-Expected-Profile"
		worker    = "X-LibreChat-Code-Worker-ID"
		workspace = "X-LibreChat-Code-Workspace-ID"
		python    = `{"code":"#"}`
	)
	refused := func(text string) string {
		return `{"status":"error","error":"` + text + `","code":"unsupported_capability"}`
	}
	for _, c := range []struct {
		name, header, value, body string
		status                    int
		answer                    string
	}{
		{"our profile", profile, "default", python, 200, `{"status":"completed","session_id":"` + session + `","stdout":"","stderr":"","files":[]}`},
		{"stateful profile", profile, "stateful", python, 409, `{"status":"error","error":"execution_profile_mismatch","code":"unsupported_capability",` +
			`"message":"Expected the stateful execution profile, but reached default","expected_profile":"stateful","actual_profile":"default"}`},
		{"unknown profile", profile, "Xé", python, 400, `{"status":"error","error":"invalid_execution_profile","code":"unsupported_capability",` +
			`"message":"Invalid execution profile: Xé","expected_profile":"Xé","actual_profile":"default"}`},
		{"profile not UTF-8", profile, "\xff", python, 400, `{"status":"error","error":"invalid_execution_profile","code":"unsupported_capability",` +
			`"message":"Invalid execution profile: ` + "\ufffd" + `","expected_profile":"` + "\ufffd" + `","actual_profile":"default"}`},
		{"worker", worker, "w-1", python, 400, refused("Code bridge worker routing requires the remote-bridge backend")},
		{"workspace with Python", workspace, "w-1", python, 400, refused("Selected-workspace programmatic execution supports bash only")},
		{"workspace with bash", workspace, "w-1", `{"code":"#","lang":"bash"}`, 400, refused("Workspace selection requires an authenticated bridge worker")},
		{"workspace in a continuation", workspace, "w-1", `{"continuation_token":"t"}`, 400, refused("Workspace selection requires an authenticated bridge worker")},
		{"malformed workspace", workspace, "-w", python, 400, refused("Invalid code workspace ID")},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := call{body: c.body, header: map[string]string{c.header: c.value}}.do(t, api.New(completed(), options()))
			want(t, w, c.status, c.answer)
		})
	}

	t.Run("profile twice", func(t *testing.T) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(python))
		r.Header.Set("X-API-Key", "good-key")
		r.Header[http.CanonicalHeaderKey(profile)] = []string{"default", "default"}
		w := httptest.NewRecorder()
		api.New(completed(), options()).ServeHTTP(w, r)
		want(t, w, 400, `{"status":"error","error":"invalid_execution_profile","code":"unsupported_capability",`+
			`"message":"Invalid execution profile: default, default","expected_profile":"default, default","actual_profile":"default"}`)
	})
}

func TestClientRequestID(t *testing.T) {
	const name = "X-LibreChat-Code-Request-ID"
	for _, id := range []string{"short", strings.Repeat("x", 129), "0123456789abcde!"} {
		w := call{body: `{"code":"#"}`, header: map[string]string{name: id}}.do(t, api.New(completed(), options()))
		want(t, w, 400, `{"status":"error","error":"Invalid programmatic request ID"}`)
	}

	id := map[string]string{name: "7f0c0f3e-2f3f-4a53-8e5a-1f7f5d9f0001"}
	e := completed()
	h := api.New(e, options())
	e.do = func(context.Context) {
		w := call{body: `{"code":"#"}`, header: id}.do(t, h)
		want(t, w, 409, `{"status":"error","error":"Programmatic request ID is already in use"}`)
	}
	for range 2 {
		if w := (call{body: `{"code":"#"}`, header: id}).do(t, h); w.Code != http.StatusOK {
			t.Errorf("got %d %s, want 200: the id is free", w.Code, w.Body)
		}
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	h := api.New(completed(), options())
	for name, c := range map[string]call{
		"answer":       {body: `{"code":"#"}`},
		"refusal":      {body: `{}`},
		"unauthorized": {header: map[string]string{"X-API-Key": ""}},
		"not found":    {path: "/nowhere"},
		"health":       {method: "GET", path: "/health"},
	} {
		header := c.do(t, h).Header()
		if got := header.Get("X-CodeAPI-Execution-Profile"); got != "default" {
			t.Errorf("%s: the profile is %q, want default", name, got)
		}
		if got := header.Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("%s: X-Content-Type-Options is %q, want nosniff", name, got)
		}
		if header.Get("X-Request-Id") == "" {
			t.Errorf("%s: there is no X-Request-Id", name)
		}
	}

	for given, kept := range map[string]bool{"0123456789abcdef": true, "short": false, strings.Repeat("a b", 10): false} {
		w := call{body: `{}`, header: map[string]string{"X-Request-Id": given}}.do(t, h)
		if got := w.Header().Get("X-Request-Id"); (got == given) != kept {
			t.Errorf("X-Request-Id %q was answered with %q, kept should be %t", given, got, kept)
		}
	}
}
