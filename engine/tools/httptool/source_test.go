package httptool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"fermata/engine/tools/httptool"
	"fermata/engine/tools/source"
)

// endpoint answers with what it has got.
func endpoint(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(map[string]any{"method": r.Method, "uri": r.RequestURI, "body": string(body), "header": r.Header, "host": r.Host}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// seen is what the endpoint has got.
type seen struct {
	Method, URI, Body, Host string
	Header                  http.Header
}

// open returns a source of one operation.
func open(t *testing.T, at string, op httptool.Operation, change func(*httptool.Options)) *httptool.Source {
	t.Helper()
	if op.Name == "" {
		op.Name = "tool"
	}
	o := httptool.Options{BaseURL: at, Operations: []httptool.Operation{op}, Private: true, Timeout: 30 * time.Second}
	if change != nil {
		change(&o)
	}
	s, err := httptool.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// call calls the tool of a source.
func call(t *testing.T, s *httptool.Source, input string) (json.RawMessage, error) {
	t.Helper()
	return s.Call(t.Context(), source.Call{Tool: "tool", Input: json.RawMessage(input), Principal: "p", Key: "key-1"})
}

// repeatable calls the tool of a source, so that it may be repeated.
func repeatable(t *testing.T, s *httptool.Source, input string) (json.RawMessage, error) {
	t.Helper()
	return s.Call(t.Context(), source.Call{Tool: "tool", Input: json.RawMessage(input), Principal: "p", Idempotent: true, Key: "key-1"})
}

// mustSee calls the tool and returns what the endpoint has got.
func mustSee(t *testing.T, s *httptool.Source, input string) seen {
	t.Helper()
	got, err := call(t, s, input)
	if err != nil {
		t.Fatalf("the call with %s failed: %v", input, err)
	}
	var v seen
	if err := json.Unmarshal(got, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// wantFailure checks a failed call.
func wantFailure(t *testing.T, err error, want string) {
	t.Helper()
	_ = mustFail(t, err, want)
}

// mustFail checks a failed call, and returns the failure.
func mustFail(t *testing.T, err error, want string) *source.CallError {
	t.Helper()
	var f *source.CallError
	if !errors.As(err, &f) {
		t.Fatalf("error is %v, want a failure", err)
	}
	if !strings.Contains(f.Message, want) {
		t.Fatalf("message is %q, want %q", f.Message, want)
	}
	if strings.Contains(f.Message, "127.0.0.1") || strings.Contains(f.Message, "http://") {
		t.Errorf("message has an address: %s", f.Message)
	}
	return f
}

// placed returns an operation as the toolsets file describes it.
func placed(t *testing.T, method, path, schema string) httptool.Operation {
	t.Helper()
	parameters, rest, err := httptool.Place(method, path, json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	return httptool.Operation{Name: "tool", Method: method, Path: path, Parameters: parameters, Rest: rest, Input: json.RawMessage(schema)}
}

func TestKeyOfACall(t *testing.T) {
	s := open(t, endpoint(t).URL, httptool.Operation{Method: "POST", Path: "/"}, nil)
	if got := mustSee(t, s, "{}"); got.Header.Get("Idempotency-Key") != "" {
		t.Errorf("headers are %v", got.Header)
	}
	got, err := repeatable(t, s, "{}")
	if err != nil || !strings.Contains(string(got), `"Idempotency-Key":["key-1"]`) {
		t.Errorf("the result is %s, error %v", got, err)
	}
}

func TestTools(t *testing.T) {
	s := open(t, "http://a", httptool.Operation{Name: "a", Description: "d", Method: "PUT", Path: "/", Output: json.RawMessage(`{}`)}, func(o *httptool.Options) {
		o.Operations = append(o.Operations, httptool.Operation{Name: "b", Method: "POST", Path: "/"},
			httptool.Operation{Name: "c", Method: "POST", Path: "/", Rest: true, Input: json.RawMessage(`{"type":"object","additionalProperties":{"type":"string"}}`)},
			httptool.Operation{Name: "d", Method: "POST", Path: "/", Input: json.RawMessage(`{"type":"object","allOf":[{"properties":{"x":{}}}]}`)},
			httptool.Operation{Name: "e", Method: "POST", Path: "/", Input: json.RawMessage(`{"type":"object","properties":{"x":{}}}`)})
	})
	tools, err := s.Tools(t.Context())
	if err != nil || len(tools) != 5 {
		t.Fatalf("tools are %v, error %v", tools, err)
	}
	for i, want := range []string{
		`a d {"type":"object","additionalProperties":false} {} true`, `b  {"type":"object","additionalProperties":false}  false`,
		`c  {"type":"object","additionalProperties":{"type":"string"}}  false`, `d  {"type":"object","allOf":[{"properties":{"x":{}}}]}  false`,
		`e  {"type":"object","properties":{"x":{}},"additionalProperties":false}  false`,
	} {
		if got := fmt.Sprintf("%s %s %s %s %t", tools[i].Name, tools[i].Description, tools[i].Input, tools[i].Output, tools[i].Idempotent); got != want {
			t.Errorf("tool %d is %s, want %s", i, got, want)
		}
	}
	_, err = call(t, s, "{}")
	wantFailure(t, err, "no such tool")
	twice := []httptool.Operation{{Name: "a", Method: "GET", Path: "/"}, {Name: "a", Method: "GET", Path: "/"}}
	if _, err := httptool.New(httptool.Options{BaseURL: "http://a", Operations: twice}); err == nil {
		t.Error("two operations of one name are taken")
	}
}

func TestTexts(t *testing.T) {
	schema := `{"properties": {"id": {"type": "integer"}, "b": {"type": "boolean"}}}`
	for method, want := range map[string]string{"GET": "[id b]", "POST": "[id]"} {
		if got := fmt.Sprint(open(t, "http://a", placed(t, method, "/{id}", schema), nil).Texts("tool")); got != want {
			t.Errorf("%s: the texts are %s, want %s", method, got, want)
		}
	}
}

func TestCallsSideBySide(t *testing.T) {
	e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Query().Get("n")) }))
	defer e.Close()
	s := open(t, e.URL, placed(t, "GET", "/", `{"properties": {"n": {}}}`), nil)
	failures := make(chan error, 32)
	for worker := range 32 {
		go func() {
			var failure error
			for i := range 20 {
				n := strconv.Itoa(worker*1000 + i)
				got, err := s.Call(t.Context(), source.Call{Tool: "tool", Input: json.RawMessage(`{"n":` + n + `}`), Principal: strconv.Itoa(worker % 3), Idempotent: i%4 > 0})
				if want := strconv.Quote(n); err != nil || string(got) != want {
					failure = fmt.Errorf("the result is %s, error %w, want %s", got, err, want)
				}
			}
			failures <- failure
		}()
	}
	for range 32 {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
}
