package httptool_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"fermata/engine/tools/httptool"
	"fermata/engine/tools/source"
)

// answering is an endpoint with one answer.
func answering(t *testing.T, status int, kind, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		if kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestResults(t *testing.T) {
	const ok = http.StatusOK
	for name, test := range map[string]struct {
		status        int
		kind, body    string
		pointer, want string
	}{
		"JSON":                   {ok, "application/json; charset=utf-8", ` {"a": [1.50, "\u00e9"]} `, "", `{"a":[1.50,"\u00e9"]}`},
		"created":                {201, "application/vnd.api+json", `12345678901234567890`, "", `12345678901234567890`},
		"pointer":                {ok, "application/json", `{"data": {"a/b": [1, {"~": 2}]}}`, "/data/a~1b/1/~0", `2`},
		"pointer in a text":      {ok, "text/plain", `{"data": 1}`, "/data", `1`},
		"text":                   {ok, "text/plain", "{\"a\": 1}\n", "", `"{\"a\": 1}\n"`},
		"text with a mark":       {ok, "text/plain; charset=UTF-8", "\ufeffa", "", `"a"`},
		"empty text":             {ok, "text/plain", "", "", `""`},
		"no content":             {204, "", "", "", `null`},
		"no content, pointer":    {204, "application/json", "", "/data", `null`},
		"empty JSON":             {ok, "application/json", "", "", `null`},
		"no type":                {ok, "", `{"a": 1}`, "", `{"a":1}`},
		"no type, and no JSON":   {ok, "", `a`, "", `"a"`},
		"null":                   {ok, "application/json", `{"data": null}`, "/data", `null`},
		"deep, but not too deep": {ok, "application/json", strings.Repeat("[", 200) + strings.Repeat("]", 200), "", strings.Repeat("[", 200) + strings.Repeat("]", 200)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := call(t, open(t, answering(t, test.status, test.kind, test.body), httptool.Operation{Method: "GET", Path: "/", Result: test.pointer}, nil), "{}")
			if err != nil || string(got) != test.want {
				t.Errorf("the result is %s, error %v, want %s", got, err, test.want)
			}
		})
	}
}

func TestT6Answers(t *testing.T) {
	const kind = "application/json"
	for name, test := range map[string]struct{ kind, body, pointer, want string }{
		"NaN":               {kind, `{"a": NaN}`, "", "is not valid JSON: it is broken at byte 6"},
		"infinity":          {kind, `-Infinity`, "", "is not valid JSON"},
		"100,000 deep":      {kind, strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000), "", "is nested too deep: the limit is 200 levels"},
		"twin names":        {kind, `{"a": 1, "\u0061": 2}`, "", "an object has two members of one name"},
		"1e400":             {kind, `[1e400]`, "", "is out of range"},
		"lone surrogate":    {kind, `"\ud800"`, "", "is not valid JSON"},
		"invalid UTF-8":     {kind, "\"\xff\"", "", "is not valid JSON"},
		"byte order mark":   {kind, "\ufeff{}", "", "byte order mark"},
		"two values":        {kind, `{} {}`, "", "more than one value"},
		"cut":               {kind, `{"a": [1`, "", "it ends too early"},
		"HTML":              {kind, `<html>http://secret</html>`, "", "it is broken at byte 0"},
		"control character": {kind, "\"\x01\"", "", "is not valid JSON"},
		"comment":           {kind, `{} // a`, "", "is not valid JSON"},
		"image":             {"image/png", "\x89PNG", "", "is neither JSON nor text"},
		"Latin-1":           {"text/plain; charset=iso-8859-1", "\xe9", "", "another encoding than UTF-8"},
		"bad text":          {"text/plain", "\xff", "", "not valid UTF-8"},
		"nothing there":     {kind, `{"data": []}`, "/data/0", "has nothing at /data/0"},
		"index":             {kind, `[1]`, "/00", "has nothing at /00"},
		"past the end":      {kind, `[1]`, "/-", "has nothing at /-"},
		"in a number":       {kind, `1`, "/a", "has nothing at /a"},
		"too large":         {kind, `"` + strings.Repeat("a", 1000) + `"`, "", "is too large: the limit is 1000 bytes"},
		"5 MB of lists":     {kind, "[" + strings.Repeat("[],", 1_666_000) + "[]]", "", "is too large"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, answering(t, http.StatusOK, test.kind, test.body), httptool.Operation{Method: "POST", Path: "/", Result: test.pointer}, nil)
			c := source.Call{Tool: "tool", Principal: "p", MaxResult: 1000}
			if name == "100,000 deep" {
				c.MaxResult = 0
			}
			_, err := s.Call(t.Context(), c)
			if f := mustFail(t, err, test.want); !f.Unknown || !strings.Contains(f.Message, "whether the call took effect is unknown") {
				t.Errorf("the failure %q does not say that the call may have taken effect", f.Message)
			}
			c.Idempotent = true
			_, err = s.Call(t.Context(), c)
			if f := mustFail(t, err, test.want); f.Unknown {
				t.Errorf("a call that can be repeated is unknown: %v", f)
			}
		})
	}
}

func TestT6Deadline(t *testing.T) {
	done := make(chan struct{})
	e := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	defer e.Close()
	defer close(done)
	s := open(t, e.URL, httptool.Operation{Method: "POST", Path: "/"}, func(o *httptool.Options) { o.Timeout = 200 * time.Millisecond })
	begin := time.Now()
	_, err := call(t, s, "{}")
	if f := mustFail(t, err, "did not answer in time: the limit is 200ms"); !f.Unknown {
		t.Error("the failure does not say that the call may have taken effect")
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestT10TextsOfFailures(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := "http://" + l.Addr().String()
	_ = l.Close()
	f := func(s *httptool.Source) string {
		_, err := call(t, s, "{}")
		return mustFail(t, err, "the endpoint").Message
	}
	op := httptool.Operation{Method: "GET", Path: "/"}
	if got := f(open(t, at+"/?key=secret", op, nil)); got != "the endpoint cannot be reached" {
		t.Errorf("message is %q", got)
	}
	// What the endpoint says is masked before it is cut.
	const secret = "secret-0123456789"
	body := strings.Repeat("x", 995) + secret + "\r\n\x00\u2028end"
	mask := func(o *httptool.Options) {
		o.Mask = func(s string) string { return strings.ReplaceAll(s, secret, "***") }
	}
	want := "the endpoint answered with status 404 Not Found: " + strings.Repeat("x", 995) + "*** e…"
	if got := f(open(t, answering(t, http.StatusNotFound, "text/plain", body), op, mask)); got != want {
		t.Errorf("message is %q, want %q", got, want)
	}
	if got := f(open(t, answering(t, 599, "image/png", "x"), op, nil)); got != "the endpoint answered with status 599" {
		t.Errorf("message is %q", got)
	}
	if got := f(open(t, answering(t, http.StatusNotModified, "", ""), op, nil)); got != "the endpoint answered with status 304 Not Modified" {
		t.Errorf("message is %q", got)
	}
	if got := f(open(t, answering(t, http.StatusBadRequest, "text/plain", strings.Repeat("a", 65<<10)), op, nil)); got != "the endpoint answered with status 400 Bad Request" {
		t.Errorf("message is %q", got)
	}
}
