package harness

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// An Upstream is an HTTP server that tools of toolsets call. It keeps a log of all requests. The
// argument "key" of a request, in its query or its JSON body, says to which test it belongs.
type Upstream struct {
	URL string

	server *httptest.Server
	mu     sync.Mutex
	seen   []*UpstreamRequest
	held   map[string]chan struct{}
}

// An UpstreamRequest is a request that an Upstream got.
type UpstreamRequest struct {
	Method, Path, Key string
	Query             url.Values
	Header            http.Header
	Body              string
	// Began and Ended are the times between which it was answered; Ended is zero until then.
	Began, Ended time.Time
}

// holdTimeout bounds how long a request is held.
const holdTimeout = 60 * time.Second

// commonUpstream is the upstream of all tests of a folder. It ends with the process.
var commonUpstream = sync.OnceValue(newUpstream)

func newUpstream() *Upstream {
	u := &Upstream{held: map[string]chan struct{}{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/now/{city}", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, map[string]any{"data": map[string]any{"city": r.PathValue("city"), "celsius": 21}})
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { writeJSON(w, arguments(r)) })
	mux.HandleFunc("/slow", slowly)
	mux.HandleFunc("/hold", u.hold)
	mux.HandleFunc("/envelope", envelope)
	mux.HandleFunc("/secret", tellSecret)
	mux.HandleFunc("/trouble/{kind}", trouble)
	u.server = httptest.NewServer(u.logged(mux))
	u.URL = u.server.URL
	return u
}

// NewUpstream returns the upstream that the tests of a folder share.
func NewUpstream(t testing.TB) *Upstream {
	t.Helper()
	return commonUpstream()
}

// logged keeps each request in the log while next answers it.
func (u *Upstream) logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // The client has left.
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		seen := &UpstreamRequest{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.Query(), Header: r.Header.Clone(), Body: string(body), Began: time.Now()}
		var members struct {
			Key string `json:"key"`
		}
		if seen.Key = seen.Query.Get("key"); seen.Key == "" && json.Unmarshal(body, &members) == nil {
			seen.Key = members.Key
		}
		u.mu.Lock()
		u.seen = append(u.seen, seen)
		u.mu.Unlock()
		defer func() {
			u.mu.Lock()
			seen.Ended = time.Now()
			u.mu.Unlock()
		}()
		next.ServeHTTP(w, r)
	})
}

// Requests returns the requests with a key, in the order in which they came.
func (u *Upstream) Requests(key string) (list []UpstreamRequest) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, r := range u.seen {
		if r.Key == key {
			list = append(list, *r)
		}
	}
	return list
}

// Await waits until n requests with a key have come, and returns them.
func (u *Upstream) Await(t testing.TB, key string, n int) (list []UpstreamRequest) {
	t.Helper()
	err := Within(StartTimeout, func() error {
		if list = u.Requests(key); len(list) < n {
			return fmt.Errorf("%d requests with the key %s have come, want %d", len(list), key, n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Sent checks that exactly n requests with a key have come.
func (u *Upstream) Sent(t testing.TB, key string, n int) {
	t.Helper()
	if list := u.Requests(key); len(list) != n {
		t.Errorf("the endpoint got %d requests, want %d: %+v", len(list), n, list)
	}
}

// Together returns how many of the requests with these keys were being answered at the same time, at
// most.
func (u *Upstream) Together(keys ...string) (most int) {
	var list []UpstreamRequest
	for _, key := range keys {
		list = append(list, u.Requests(key)...)
	}
	for _, one := range list {
		n := 0
		for _, other := range list {
			if !other.Began.After(one.Began) && (other.Ended.IsZero() || other.Ended.After(one.Began)) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// gate returns what requests to /hold with a key wait for.
func (u *Upstream) gate(key string) chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.held[key] == nil {
		u.held[key] = make(chan struct{})
	}
	return u.held[key]
}

// Release lets all requests to /hold with a key be answered, also those that come later. It is called
// once for a key.
func (u *Upstream) Release(key string) { close(u.gate(key)) }

// hold answers with the arguments when the test releases their key.
func (u *Upstream) hold(w http.ResponseWriter, r *http.Request) {
	got := arguments(r)
	select {
	case <-u.gate(fmt.Sprint(got["key"])):
		writeJSON(w, got)
	case <-r.Context().Done():
	case <-time.After(holdTimeout):
	}
}

// arguments returns the members of a request's query and of its JSON body. What looks like a whole
// number is one.
func arguments(r *http.Request) map[string]any {
	got := map[string]any{}
	for name, values := range r.URL.Query() {
		got[name] = values[0]
		if n, err := strconv.Atoi(values[0]); err == nil {
			got[name] = n
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&got) // Without a body there is no more.
	return got
}

// slowly answers with the arguments after as many milliseconds as "ms" says.
func slowly(w http.ResponseWriter, r *http.Request) {
	got := arguments(r)
	ms, _ := strconv.Atoi(fmt.Sprint(got["ms"]))
	time.Sleep(time.Duration(ms) * time.Millisecond)
	writeJSON(w, got)
}

// envelope answers in the form {ok, error, ret}.
func envelope(w http.ResponseWriter, r *http.Request) {
	if got := arguments(r); got["ok"] == true || got["ok"] == "true" {
		writeJSON(w, map[string]any{"ok": true, "ret": got})
		return
	}
	writeJSON(w, map[string]any{"ok": false, "error": map[string]any{"message": "no such order", "code": "E404"}})
}

// tellSecret tells the secret that the request came with in many forms. With the argument "fail" it
// does so in an error.
func tellSecret(w http.ResponseWriter, r *http.Request) {
	secret := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	got := map[string]any{
		"plain": secret, "inside": "<" + secret + ">", "base64": base64.StdEncoding.EncodeToString([]byte("user:" + secret)),
		"url": url.QueryEscape(secret), "length": len(secret),
	}
	w.Header().Set("X-Secret", secret)
	if r.URL.Query().Get("fail") != "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTeapot)
	}
	writeJSON(w, got)
}

// trouble misbehaves in the way that the path names.
func trouble(w http.ResponseWriter, r *http.Request) {
	switch kind := r.PathValue("kind"); kind {
	case "hang":
		<-r.Context().Done()
	case "trickle":
		w.Header().Set("Content-Length", "1000000")
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, " ") // The client has left, then.
			_ = http.NewResponseController(w).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	case "short":
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"cut": `) // The server of net/http then closes the connection.
	case "broken":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"a": 1, "b": }`)
	case "nan":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"a": NaN}`)
	case "redirect":
		http.Redirect(w, r, "http://127.0.0.2:1/stolen", http.StatusFound)
	case "huge":
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, "%q", strings.Repeat("x", 6_000_000))
	case "bomb":
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = fmt.Fprintf(z, "%q", strings.Repeat("x", 60_000_000))
		_ = z.Close()
	case "nothing":
		w.WriteHeader(http.StatusNoContent)
	case "cut":
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	default:
		status, _ := strconv.Atoi(kind)
		http.Error(w, "this is the endpoint's own text", max(status, 400))
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	_ = json.NewEncoder(w).Encode(v) // The client has left, then.
}
