package peer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"fermata/api"
	"fermata/continuation"
	"fermata/engine"
	"fermata/engine/core"
)

func peerKey(t *testing.T, secrets ...string) Key {
	t.Helper()
	var list [][]byte
	for _, s := range secrets {
		list = append(list, []byte(s))
	}
	k, err := NewKey(list)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

const firstSecret, secondSecret = "first secret of thirty-two bytes!", "second secret of thirty-two byte"

// The signed forms must not change: servers of different versions run side by side.
func TestSignedForms(t *testing.T) {
	k, at := peerKey(t, firstSecret), time.UnixMilli(1_700_000_000_123)
	hash := hexHash([]byte(`{"Token":"t"}`))
	request := k.sign(at, resumePath, hash)
	for name, pair := range map[string][2]string{
		"group":        {k.Group("redis:6379/0?"), "957aed5bd34753a5"},
		"request":      {request, "1700000000123.59e939b6923a5587d7e4374319283cc08c43d271547b9637cd28aa81a956fd2a.6b4d56b0651e15f5943bdcad97fa3ccf230d97d29c2ad4ff2ebf2062e03725b3"},
		"answer":       {k.signAnswer(request, 200, hexHash([]byte(`{}`))), "5b67d8ff30d77a2e828c43397545ad0a2b6571f394535e99fffeab4012aeab04"},
		"fingerprint":  {k.fingerprints()[0], "9f04f042a8ee9095"},
		"announcement": {k.announce("home.instance", "http://10.0.0.1:8000"), "15287d5fa4d5ec4b59061a028c151391707c9c49f1a949c9a531ea986ce60b2a http://10.0.0.1:8000"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got\n%s\nwant\n%s", name, pair[0], pair[1])
		}
	}
}

func TestSignatures(t *testing.T) {
	now := time.Now()
	old, both, other := peerKey(t, firstSecret), peerKey(t, secondSecret, firstSecret), peerKey(t, secondSecret)
	hash := hexHash(nil)
	good := old.sign(now, resumePath, hash)
	for name, c := range map[string]struct {
		key       Key
		signature string
		at        time.Time
		path      string
		ok        bool
	}{
		"good":              {old, good, now, resumePath, true},
		"older secret":      {both, good, now, resumePath, true},
		"another secret":    {other, good, now, resumePath, false},
		"another path":      {old, good, now, cancelPath, false},
		"late":              {old, good, now.Add(skew + time.Second), resumePath, false},
		"early":             {old, good, now.Add(-skew - time.Second), resumePath, false},
		"another hash":      {old, strings.Replace(good, hash, hexHash([]byte("x")), 1), now, resumePath, false},
		"none":              {old, "", now, resumePath, false},
		"only a time":       {old, strings.Split(good, ".")[0], now, resumePath, false},
		"no mac":            {old, good[:strings.LastIndex(good, ".")+1], now, resumePath, false},
		"cut":               {old, good[:len(good)-2], now, resumePath, false},
		"an answer's":       {old, strings.Join(append(strings.Split(good, ".")[:2], old.signAnswer(good, 200, hash)), "."), now, resumePath, false},
		"an announcement's": {old, strings.Join(append(strings.Split(good, ".")[:2], strings.Fields(old.announce("s", "a"))[0]), "."), now, resumePath, false},
	} {
		got, ok := c.key.verify(c.signature, c.at, c.path)
		if ok != c.ok || ok && got != hash {
			t.Errorf("%s: verify = %q, %t, want %t", name, got, ok, c.ok)
		}
	}
}

// An impostor is a server at the address of another server.
func TestForgedAnswers(t *testing.T) {
	k, other := peerKey(t, firstSecret), peerKey(t, secondSecret)
	const paused = `{"outcome":{"state":"paused","token":"forged"}}`
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		ok     bool
	}{
		"good": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(signatureHeader, k.signAnswer(r.Header.Get(signatureHeader), 200, hexHash([]byte(paused))))
			_, _ = io.WriteString(w, paused)
		}, true},
		"unsigned": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, paused) }, false},
		"another secret": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(signatureHeader, other.signAnswer(r.Header.Get(signatureHeader), 200, hexHash([]byte(paused))))
			_, _ = io.WriteString(w, paused)
		}, false},
		"another body": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(signatureHeader, k.signAnswer(r.Header.Get(signatureHeader), 200, hexHash([]byte(`{}`))))
			_, _ = io.WriteString(w, paused)
		}, false},
		"another status": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(signatureHeader, k.signAnswer(r.Header.Get(signatureHeader), 409, hexHash([]byte(paused))))
			_, _ = io.WriteString(w, paused)
		}, false},
		"the answer to another request": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(signatureHeader, k.signAnswer(k.sign(time.Now().Add(-time.Second), resumePath, hexHash(nil)), 200, hexHash([]byte(paused))))
			_, _ = io.WriteString(w, paused)
		}, false},
		"the request's signature": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(signatureHeader, r.Header.Get(signatureHeader))
			_, _ = io.WriteString(w, paused)
		}, false},
		"too large": {func(w http.ResponseWriter, r *http.Request) {
			body := paused + strings.Repeat(" ", 1000)
			w.Header().Set(signatureHeader, k.signAnswer(r.Header.Get(signatureHeader), 200, hexHash([]byte(body))))
			_, _ = io.WriteString(w, body)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(c.answer))
			defer server.Close()
			outcome, err := NewClient(k, 500).Resume(t.Context(), server.URL, engine.Resume{Token: "t"})
			if c.ok != (err == nil) || c.ok && outcome.Token != "forged" || !c.ok && (!errors.Is(err, engine.ErrOwnerAway) || outcome.Token != "") {
				t.Errorf("Resume = %+v, %v", outcome, err)
			}
		})
	}
	t.Run("redirect", func(t *testing.T) {
		asked := false
		aim := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
		defer aim.Close()
		server := httptest.NewServer(http.RedirectHandler(aim.URL, http.StatusTemporaryRedirect))
		defer server.Close()
		_, err := NewClient(k, 500).Resume(t.Context(), server.URL, engine.Resume{})
		if !errors.Is(err, engine.ErrOwnerAway) || asked {
			t.Errorf("Resume = %v and the aim of a redirect was asked: %t; want neither", err, asked)
		}
	})
}

// handOver is an Executions that answers every Resume.
type handOver struct{ Executions }

func (handOver) Resume(_ context.Context, r engine.Resume) (core.Outcome, error) {
	if !r.HandedOver {
		return core.Outcome{}, errors.New("it may be handed over again")
	}
	return core.Outcome{State: core.Completed, Stdout: r.Token}, nil
}

// peerServer answers other servers, with small limits.
func peerServer(t *testing.T, k Key) *httptest.Server {
	t.Helper()
	r := api.New(api.Options{Log: slog.New(slog.DiscardHandler)})
	Register(r, handOver{}, k, Limits{Body: 1000, Results: 10})
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	return s
}

func TestPeers(t *testing.T) {
	k := peerKey(t, firstSecret)
	server := peerServer(t, k)
	outcome, err := NewClient(k, 1<<20).Resume(t.Context(), server.URL, engine.Resume{Token: "abc"})
	if err != nil || outcome.Stdout != "abc" {
		t.Errorf("Resume = %+v, %v, want abc", outcome, err)
	}
	// The address for peers does not answer clients.
	response, err := http.Get(server.URL + "/health")
	if err != nil {
		t.Fatal(err)
	}
	if _ = response.Body.Close(); response.StatusCode != http.StatusNotFound {
		t.Errorf("GET /health of a peer's address: got %s, want 404", response.Status)
	}
}

// A body is refused if it is not the one that was signed, and also if it is signed and too large.
func TestPeerBodies(t *testing.T) {
	k := peerKey(t, firstSecret)
	server := peerServer(t, k)
	large := []byte(`"` + strings.Repeat("x", 1000+10*resultRoom+restRoom) + `"`)
	for _, c := range []struct {
		name         string
		signed, sent []byte
		chunked      bool
		status       int
	}{
		{"good", []byte(`{}`), []byte(`{}`), false, 200},
		{"good, chunked", []byte(`{}`), []byte(`{}`), true, 200},
		{"another body", []byte(`{}`), []byte(`{ }`), false, 401},
		{"too large", large, large, false, 413},
		{"too large, chunked", large, large, true, 413},
		{"no JSON", []byte(`{`), []byte(`{`), false, 400},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+resumePath, bytes.NewReader(c.sent))
		if err != nil {
			t.Fatal(err)
		}
		if c.chunked {
			r.ContentLength = -1
		}
		r.Header.Set(signatureHeader, k.sign(time.Now(), resumePath, hexHash(c.signed)))
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if _ = response.Body.Close(); response.StatusCode != c.status {
			t.Errorf("%s: got %s, want %d", c.name, response.Status, c.status)
		}
	}
}

// The largest continuation that a client may send can be handed over.
func TestHandedOverIsNotMuchLarger(t *testing.T) {
	var results []core.Result
	body := `{"continuation_token":"t","tool_results":[` + strings.Repeat(`{"call_id":"call_001"},`, 1000)
	for range 1000 {
		results = append(results, core.Result{CallID: "call_001", Failed: true})
	}
	handed, err := api.Encode(resumeRequestOf(engine.Resume{Principal: strings.Repeat("p", 1000), Token: strings.Repeat("t", 1000), Results: results}))
	if limit := len(body) + 1000*resultRoom + restRoom; err != nil || len(handed) > limit {
		t.Errorf("a continuation of %d bytes is handed over as %d (%v), at most %d are taken", len(body), len(handed), err, limit)
	}
}

// texts is a registry in memory.
type texts struct {
	continuation.Registry
	by map[string]string
	// said is what servers say of themselves; it may be nil.
	said map[string]string
}

func (r texts) Announce(_ context.Context, server, address string, _ time.Duration) error {
	r.by[server] = address
	return nil
}

func (r texts) Locate(_ context.Context, server string) (string, error) {
	if text, ok := r.by[server]; ok {
		return text, nil
	}
	return "", continuation.ErrNotFound
}

func (r texts) Servers(context.Context) (map[string]string, error) { return r.by, nil }

func TestRegistry(t *testing.T) {
	var log bytes.Buffer
	k, inner := peerKey(t, firstSecret), texts{by: map[string]string{}}
	r := NewRegistry(inner, k, true, slog.New(slog.NewTextHandler(&log, nil)))
	ctx := t.Context()
	for _, server := range []string{"a", "b"} {
		if err := r.Announce(ctx, server, "http://"+server, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := r.Locate(ctx, "a"); got != "http://a" || err != nil {
		t.Errorf("Locate = %q, %v, want http://a", got, err)
	}
	if _, err := r.Locate(ctx, "c"); !errors.Is(err, continuation.ErrNotFound) {
		t.Errorf("Locate = %v, want ErrNotFound", err)
	}
	other := NewRegistry(inner, peerKey(t, secondSecret), true, slog.New(slog.DiscardHandler))
	for name, text := range map[string]string{
		"plain": "http://evil", "empty": "", "of another server": inner.by["b"], "changed": inner.by["a"] + ".evil", "no mac": " http://evil",
	} {
		good := inner.by["a"]
		inner.by["a"] = text
		if got, err := r.Locate(ctx, "a"); got != "" || !errors.Is(err, engine.ErrOwnerAway) {
			t.Errorf("%s: Locate = %q, %v, want ErrOwnerAway", name, got, err)
		}
		inner.by["a"] = good
	}
	if _, err := other.Locate(ctx, "a"); !errors.Is(err, engine.ErrOwnerAway) {
		t.Errorf("Locate with another secret = %v, want ErrOwnerAway", err)
	}
	inner.by["a"] = "http://evil"
	servers, err := r.Servers(ctx)
	if len(servers) != 1 || servers["b"] != "http://b" || err != nil {
		t.Errorf("Servers = %v, %v, want b alone", servers, err)
	}
	if n := strings.Count(log.String(), "not signed"); n != 1 {
		t.Errorf("it was logged %d times within a minute, want once:\n%s", n, log.String())
	}
}
