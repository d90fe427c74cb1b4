package librechat_test

import (
	"encoding/base64"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"fermata/api/auth"
	"fermata/engine"
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
			w := call{body: `{"code":"#"}`, header: map[string]string{"X-API-Key": c.key, "Authorization": c.authorization}}.do(t, newHandler(e, options()))
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
	o.Keys = []auth.Key{{Name: "nobody"}}
	w := call{body: `{"code":"#"}`, header: map[string]string{"X-API-Key": ""}}.do(t, newHandler(completed(), o))
	if w.Code != http.StatusUnauthorized {
		t.Errorf("got %d %s, want 401", w.Code, w.Body)
	}
}

func TestOpenServerKnowsNobody(t *testing.T) {
	o := options()
	o.Open, o.Hosts = true, []string{"example.com"} // the Host of httptest's requests
	for _, key := range []string{"", "good-key", "wrong"} {
		e := completed()
		w := call{body: `{"code":"#"}`, header: map[string]string{"X-API-Key": key}}.do(t, newHandler(e, o))
		if w.Code != http.StatusOK || e.starts[0].Principal != "anonymous" {
			t.Errorf("key %q: got %d %s and asked %+v, want 200 for anonymous", key, w.Code, w.Body, e.starts)
		}
	}
}

// An unreadable is a body that must not be read before the answer is on its way.
type unreadable struct {
	t *testing.T
	w *httptest.ResponseRecorder
}

func (u unreadable) Read([]byte) (int, error) {
	if !u.w.Flushed {
		u.t.Error("the body was read")
	}
	return 0, http.ErrBodyReadAfterClose
}

func TestAuthenticationComesBeforeTheBody(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, unreadable{t, w})
	newHandler(completed(), options()).ServeHTTP(w, r)
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
			w := call{body: c.body, header: map[string]string{c.header: c.value}}.do(t, newHandler(completed(), options()))
			want(t, w, c.status, c.answer)
		})
	}

	t.Run("profile twice", func(t *testing.T) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(python))
		r.Header.Set("X-API-Key", "good-key")
		r.Header[http.CanonicalHeaderKey(profile)] = []string{"default", "default"}
		w := httptest.NewRecorder()
		newHandler(completed(), options()).ServeHTTP(w, r)
		want(t, w, 400, `{"status":"error","error":"invalid_execution_profile","code":"unsupported_capability",`+
			`"message":"Invalid execution profile: default, default","expected_profile":"default, default","actual_profile":"default"}`)
	})
}

func TestClientRequestID(t *testing.T) {
	const name = "X-LibreChat-Code-Request-ID"
	for _, id := range []string{"short", strings.Repeat("x", 129), "0123456789abcde!"} {
		w := call{body: `{"code":"#"}`, header: map[string]string{name: id}}.do(t, newHandler(completed(), options()))
		want(t, w, 400, `{"status":"error","error":"Invalid programmatic request ID"}`)
	}

	const id = "7f0c0f3e-2f3f-4a53-8e5a-1f7f5d9f0001"
	e := completed()
	h := newHandler(e, options())
	for _, body := range []string{`{"code":"#"}`, `{"continuation_token":"t","tool_results":[{"call_id":"call_001","result":1,"is_error":false}]}`} {
		if w := (call{body: body, header: map[string]string{name: id}}).do(t, h); w.Code != http.StatusOK {
			t.Fatalf("got %d %s, want 200", w.Code, w.Body)
		}
	}
	if got := []string{e.starts[0].RequestID, e.resumes[0].RequestID}; got[0] != id || got[1] != id {
		t.Errorf("the ids are %q, want %q", got, id)
	}
	e.err = engine.ErrRequestInUse
	w := call{body: `{"code":"#"}`, header: map[string]string{name: id}}.do(t, h)
	want(t, w, 409, `{"status":"error","session_id":"`+e.starts[1].Session+`","error":"Programmatic request ID is already in use"}`)
}

func TestIdempotencyKey(t *testing.T) {
	const name = "Idempotency-Key"
	for _, key := range []string{strings.Repeat("x", 256), "a b", "ü"} {
		w := call{body: `{"code":"#"}`, header: map[string]string{name: key}}.do(t, newHandler(completed(), options()))
		want(t, w, 400, `{"status":"error","error":"Idempotency-Key must be 1 to 255 printable ASCII characters without spaces"}`)
	}
	e := completed()
	h := newHandler(e, options())
	for _, body := range []string{`{"code":"#"}`, `{"code":"#"}`, `{"code":"##"}`} {
		call{body: body, header: map[string]string{name: "k"}}.do(t, h)
	}
	if e.starts[0].Key != "k" || e.starts[0].Request == "" || e.starts[0].Request != e.starts[1].Request || e.starts[0].Request == e.starts[2].Request {
		t.Errorf("got %+v, want the key and a hash of the body", e.starts)
	}
	for err, text := range map[error]string{
		engine.ErrKeyReused: "Idempotency-Key was used for another request",
		engine.ErrKeySpent:  "The execution that this Idempotency-Key started has gone on",
	} {
		e.err = err
		w := call{body: `{"code":"#","session_id":"` + session + `"}`, header: map[string]string{name: "k"}}.do(t, h)
		want(t, w, 409, `{"status":"error","session_id":"`+session+`","error":"`+text+`"}`)
	}
}

func TestCancel(t *testing.T) {
	const id = "7f0c0f3e-2f3f-4a53-8e5a-1f7f5d9f0001"
	for _, c := range []struct {
		name, body string
		cancelling engine.Cancelling
		err        error
		status     int
		answer     string
	}{
		{"in flight", `{"request_id":"` + id + `"}`, engine.CancelRequested, nil, 202, `{"status":"cancellation_requested"}`},
		{"unknown", `{"request_id":"` + id + `"}`, engine.CancelUnknown, nil, 202, `{"status":"cancellation_requested"}`},
		{"answered", `{"request_id":"` + id + `"}`, engine.CancelCompleted, nil, 200, `{"status":"already_completed"}`},
		{"another principal's", `{"request_id":"` + id + `"}`, "", engine.ErrForbidden, 403, `{"error":"Programmatic request belongs to another principal"}`},
		{"no service", `{"request_id":"` + id + `"}`, "", errors.New("down"), 503, `{"error":"Cancellation service unavailable"}`},
		{"no id", `{}`, "", nil, 400, `{"error":"Invalid or missing request_id"}`},
		{"short id", `{"request_id":"short"}`, "", nil, 400, `{"error":"Invalid or missing request_id"}`},
		{"no text", `{"request_id":1234567890123456}`, "", nil, 400, `{"error":"Invalid or missing request_id"}`},
		{"capitals", `{"REQUEST_ID":"` + id + `"}`, "", nil, 400, `{"error":"\"REQUEST_ID\" is not known; did you mean request_id?"}`},
		{"a slip", `{"sesion_id":"x"}`, "", nil, 400, `{"error":"\"sesion_id\" is not known; did you mean session_id?"}`},
		{"another slip", `{"executionid":"x"}`, "", nil, 400, `{"error":"\"executionid\" is not known; did you mean execution_id?"}`},
		{"a third slip", `{"continuationtoken":"x"}`, "", nil, 400, `{"error":"\"continuationtoken\" is not known; did you mean continuation_token?"}`},
		{"no JSON", `request_id`, "", nil, 400, `{"error":"Invalid or missing request_id"}`},
	} {
		e := &script{cancelling: c.cancelling, err: c.err}
		h := newHandler(e, options())
		for _, path := range []string{path + "/cancel", "/v1" + path + "/cancel"} {
			w := call{path: path, body: c.body}.do(t, h)
			if w.Code != c.status || w.Body.String() != c.answer {
				t.Errorf("%s: got %d %s, want %d %s", c.name, w.Code, w.Body, c.status, c.answer)
			}
		}
		if c.status != 400 && (e.cancels[0] != engine.Cancel{Principal: "ada", RequestID: id}) {
			t.Errorf("%s: asked for %+v", c.name, e.cancels[0])
		}
	}
	w := call{path: path + "/cancel", header: map[string]string{"X-API-Key": ""}}.do(t, newHandler(completed(), options()))
	want(t, w, 401, `{"error":"Invalid or missing API key"}`)
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	h := newHandler(completed(), options())
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

const tokenSecret = "a-secret-of-thirty-two-bytes-or-more"

// tokens accepts what token returns.
func tokens(t *testing.T) *auth.JWT {
	t.Helper()
	v, err := auth.NewJWT(auth.JWTOptions{
		Issuer: "librechat", Audience: "codeapi", Algorithms: []string{auth.HS256},
		HMACSecret: []byte(tokenSecret), HMACKeyID: "hmac", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// token returns a token with the claims that LibreChat's tokens have, with changes.
func token(t *testing.T, change map[string]any) string {
	t.Helper()
	now := time.Now().Unix()
	claims := jwt.MapClaims{
		"iss": "librechat", "aud": "codeapi", "sub": "ada", "jti": "6f1c", "iat": now, "nbf": now, "exp": now + 300,
		"tenant_id": "acme", "principal_source": "librechat_jwt", "auth_context_hash": "abcdef",
	}
	maps.Copy(claims, change)
	unsigned := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
	unsigned.Header["kid"] = "hmac"
	signed, err := unsigned.SignedString([]byte(tokenSecret))
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func TestTokensBesideKeys(t *testing.T) {
	good, bad := token(t, nil), token(t, map[string]any{"iss": "x"})
	const noKey, noToken = "Invalid or missing API key", "Invalid bearer token"
	for _, c := range []struct {
		name, key, authorization, want string
	}{
		{"token", "", "Bearer " + good, "jwt:acme:ada"},
		{"bearer in small letters", "", "bearer  " + good, "jwt:acme:ada"},
		{"key", "good-key", "", "ada"},
		{"bearer key", "", "Bearer good-key", "ada"},
		{"bearer key with dots", "", "Bearer a.b.c", "dot"},
		{"good key, bad token", "good-key", "Bearer " + bad, "ada"},
		{"bad key, good token", "wrong", "Bearer " + good, "jwt:acme:ada"},
		{"bad token", "", "Bearer " + bad, noToken},
		{"bad key, bad token", "wrong", "Bearer " + bad, noToken},
		{"bad bearer key", "", "Bearer wrong", noKey},
		{"token as ApiKey", "", "ApiKey " + good, noKey},
		{"token as X-API-Key", good, "", noKey},
		{"token as Basic", "", basic(good), noKey},
		{"nothing", "", "", noKey},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options()
			o.JWT = tokens(t)
			o.Keys = append(o.Keys, auth.Key{Name: "dot", Key: "a.b.c"})
			e := completed()
			w := call{body: `{"code":"#"}`, header: map[string]string{"X-API-Key": c.key, "Authorization": c.authorization}}.do(t, newHandler(e, o))
			if c.want == noKey || c.want == noToken {
				want(t, w, http.StatusUnauthorized, `{"error":"`+c.want+`"}`)
				if got := w.Header().Get("WWW-Authenticate"); got != "Bearer" {
					t.Errorf("WWW-Authenticate is %q, want Bearer", got)
				}
				return
			}
			if w.Code != http.StatusOK || e.starts[0].Principal != c.want {
				t.Errorf("got %d %s and asked %+v, want 200 for %s", w.Code, w.Body, e.starts, c.want)
			}
		})
	}

	t.Run("no tokens configured", func(t *testing.T) {
		w := call{body: `{"code":"#"}`, header: map[string]string{"X-API-Key": "", "Authorization": "Bearer " + good}}.do(t, newHandler(completed(), options()))
		want(t, w, http.StatusUnauthorized, `{"error":"`+noKey+`"}`)
	})
}

// An execution belongs to a user and not to a token: each request may come with a new token.
func TestEachContinuationHasItsToken(t *testing.T) {
	o := options()
	o.JWT = tokens(t)
	e := completed()
	h := newHandler(e, o)
	for _, jti := range []string{"1", "2"} {
		bearer := token(t, map[string]any{"jti": jti, "auth_context_hash": "hash " + jti})
		call{
			body:   `{"continuation_token":"t","tool_results":[{"call_id":"call_001","result":1}]}`,
			header: map[string]string{"X-API-Key": "", "Authorization": "Bearer " + bearer},
		}.do(t, h)
	}
	if len(e.resumes) != 2 || e.resumes[0].Principal != "jwt:acme:ada" || e.resumes[1].Principal != "jwt:acme:ada" {
		t.Errorf("asked %+v, want two continuations of jwt:acme:ada", e.resumes)
	}
}
