package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/engine/tools"
	"fermata/engine/tools/config"
	"fermata/engine/tools/source"
)

// secret is the secret of the toolsets in tests.
const secret = "a secret of/27 characters"

// opened has toolsets and their log.
type opened struct {
	*tools.Tools
	log *bytes.Buffer
}

// open opens a toolsets file in which URL stands for the endpoint. Beside it is the OpenAPI document.
func open(t *testing.T, file, document string, endpoint http.HandlerFunc) opened {
	t.Helper()
	server := httptest.NewServer(endpoint)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"toolsets.yaml": file, "api.json": document} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "URL", server.URL)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read, err := config.Read(filepath.Join(dir, "toolsets.yaml"), func(string) (string, bool) { return secret, true })
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	o := opened{tools.Open(t.Context(), tools.Options{File: read, Log: slog.New(slog.NewTextHandler(&log, nil)), MaxResult: 10_000}), &log}
	t.Cleanup(func() {
		if err := o.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return o
}

// call calls a tool of the toolset api.
func (o opened) call(t *testing.T, tool, input string) (string, error) {
	t.Helper()
	result, err := o.Call(t.Context(), tools.Request{Toolset: "api", Tool: tool, Principal: "alice", Input: json.RawMessage(input)})
	return string(result.Output), err
}

// mustFail checks a failed call, and tells whether it is unknown if it took effect.
func mustFail(t *testing.T, err error, message string) (unknown bool) {
	t.Helper()
	failed, ok := errors.AsType[*source.CallError](err)
	if !ok || failed.Message != message {
		t.Fatalf("got %v (%T), want %s", err, err, message)
	}
	return failed.Unknown
}

// echo answers with the request that it has got.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"uri": r.RequestURI, "body": string(body), "header": r.Header})
}

const echoFile = `toolsets:
  api:
    private: true
    http:
      base_url: URL/v1
      headers: {X-Api-Key: "${KEY}"}
      tools:
        - {name: send, method: POST, path: /send, cost: 3, parameters: {type: object, properties: {n: {type: integer}, t: {type: string}}}}
        - {name: get, method: GET, path: "/get/{n}", parameters: {type: object, properties: {n: {type: integer}, all: {type: boolean}}, required: [n]}}
        - {name: plain, method: POST, path: /plain}
  loose:
    private: true
    validate: false
    http:
      base_url: URL
      tools: [{name: send, method: POST, path: /send, parameters: {type: object, properties: {n: {type: integer}}}}]
`

func TestCall(t *testing.T) {
	o := open(t, echoFile, "", echo)
	result, err := o.Call(t.Context(), tools.Request{Toolset: "api", Tool: "send", Principal: "alice", Input: json.RawMessage(" {\"t\": \"\\u0061\", \"n\": 12345678901234567890}\n")})
	if err != nil || result.Cost != 3 || !strings.Contains(string(result.Output), `"body":"{\"n\":12345678901234567890,\"t\":\"a\"}"`) {
		t.Errorf("got %s for %d, %v", result.Output, result.Cost, err)
	}
	if got, err := o.call(t, "get", `{"n": "5", "all": null}`); err != nil || !strings.Contains(got, `"uri":"/v1/get/5"`) {
		t.Errorf("text in a path: %s, %v", got, err)
	}
	if got, err := o.call(t, "plain", ""); err != nil || !strings.Contains(got, `"uri":"/v1/plain"`) {
		t.Errorf("no input: %s, %v", got, err)
	}
	loose, err := o.Call(t.Context(), tools.Request{Toolset: "loose", Tool: "send", Input: json.RawMessage(`{"n": "text"}`)})
	if err != nil || !strings.Contains(string(loose.Output), `{\"n\":\"text\"}`) {
		t.Errorf("validate: false: %s, %v", loose.Output, err)
	}
}

// TestT22Refused makes calls that are refused before a request is sent.
func TestT22Refused(t *testing.T) {
	o := open(t, echoFile, "", func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	for _, c := range []struct{ toolset, tool, input, want string }{
		{"api", "send", `{"n": "five"}`, "n must be a whole number, not a text"},
		{"api", "send", `{"n": 1, "n": 2}`, ""},
		{"api", "send", `[1]`, "the input must be an object with the names and values of the parameters"},
		{"loose", "send", `"x"`, "the input must be an object with the names and values of the parameters"},
		{"loose", "send", `{"n": 1, "n": 2}`, ""},
		{"api", "send", `{`, ""},
		{"api", "get", `{}`, ""},
		{"api", "Send", `{}`, `the toolset api has no tool "Send"`},
		{"api", "", `{}`, `the toolset api has no tool ""`},
		{"api", "a\x1b\n" + strings.Repeat("é", 500), `{}`, `the toolset api has no tool "a\x1b\n` + strings.Repeat(`\u00e9`, 37) + `\u2026"`},
		{"API", "send", `{}`, `there is no toolset "API"`},
	} {
		_, err := o.Call(t.Context(), tools.Request{Toolset: c.toolset, Tool: c.tool, Input: json.RawMessage(c.input)})
		failed, ok := errors.AsType[*source.CallError](err)
		if !ok || c.want != "" && failed.Message != c.want || failed.Unknown {
			t.Errorf("%s.%s(%s): got %v, want %s", c.toolset, c.tool, c.input, err, c.want)
		}
		if unknown := strings.Contains(c.want, "no tool"); errors.Is(err, tools.ErrUnknown) != unknown {
			t.Errorf("%s.%s: the cause is ErrUnknown: %v", c.toolset, c.tool, !unknown)
		}
	}
}

func TestEnvelope(t *testing.T) {
	const file = `toolsets:
  api:
    private: true
    http:
      base_url: URL
      tools:
        - {name: open, method: POST, path: /, envelope: true, parameters: {type: object, additionalProperties: true}}
        - {name: part, method: POST, path: /, envelope: true, result: /items/1, parameters: {type: object, additionalProperties: true}}
        - {name: again, method: POST, path: /, envelope: true, idempotent: true, parameters: {type: object, additionalProperties: true}}
`
	o := open(t, file, "", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Answer json.RawMessage }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body.Answer)
	})
	const promised = "the answer is not the object {ok, error, ret} that the toolset promises: "
	const unsure = "; whether the call took effect is unknown"
	for _, c := range []struct{ tool, answer, want, failed string }{
		{"open", `{"ok": true, "ret": {"a": [1]}, "more": 1}`, `{"a":[1]}`, ""},
		{"open", `{"ok": true}`, `null`, ""},
		{"open", `{"ok": true, "error": "x", "ret": 0}`, `0`, ""},
		{"open", `{"ok": false, "error": "no such city"}`, "", "no such city"},
		{"open", `{"ok": false, "error": {"message": "no such city"}}`, "", "no such city"},
		{"open", `{"ok": false, "error": {"code": 7}}`, "", `{"code":7}`},
		{"open", `{"ok": false, "error": " "}`, "", "the tool reports a failure"},
		{"open", `{"ok": false}`, "", "the tool reports a failure"},
		{"open", `{"OK": true, "ret": 1}`, "", promised + "it has no member ok" + unsure},
		{"open", `{"ok": "true", "ret": 1}`, "", promised + "its member ok is neither true nor false" + unsure},
		{"open", `[true]`, "", promised + "it is no object" + unsure},
		{"open", `null`, "", promised + "it is no object" + unsure},
		{"again", `{"ret": 1}`, "", promised + "it has no member ok"},
		{"part", `{"ok": true, "ret": {"items": [1, {"b": 2}]}}`, `{"b":2}`, ""},
		{"part", `{"ok": false, "error": "none"}`, "", "none"},
		{"part", `{"ok": true, "ret": {"items": [1]}}`, "", `the answer has no part "/items/1" that could be the result` + unsure},
		{"part", `{"ok": true, "ret": 5}`, "", `the answer has no part "/items/1" that could be the result` + unsure},
	} {
		got, err := o.call(t, c.tool, `{"answer": `+c.answer+`}`)
		if c.failed != "" {
			if unknown := mustFail(t, err, c.failed); unknown != strings.HasSuffix(c.failed, unsure) {
				t.Errorf("%s: unknown is %v", c.answer, unknown)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%s: got %s, %v", c.answer, got, err)
		}
	}
}

// TestT10Secrets lets an endpoint reveal the secret in many ways.
func TestT10Secrets(t *testing.T) {
	o := open(t, strings.Replace(echoFile, "cost: 3", "envelope: true", 1), "", func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("X-Api-Key")
		if key != secret {
			t.Errorf("the endpoint got the key %q", key)
		}
		var body struct{ T string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		w.Header().Set("Content-Type", "application/json")
		switch body.T {
		case "redirect":
			http.Redirect(w, r, "http://elsewhere.example/"+key, http.StatusTemporaryRedirect)
		case "status":
			http.Error(w, "wrong key "+key, http.StatusForbidden)
		case "late":
			http.Error(w, strings.Repeat("x", 990)+key, http.StatusForbidden)
		case "envelope":
			_, _ = fmt.Fprintf(w, `{"ok": false, "error": "wrong key a\u0020secret of\/27 characters"}`)
		case "hang up":
			panic(http.ErrAbortHandler)
		default:
			_, _ = fmt.Fprintf(w, `{"ok": true, "ret": {"k": "a\u0020secret of\/27 characters", "a secret of/27 characters": 1}}`)
		}
	})
	for _, how := range []string{"result", "redirect", "status", "late", "envelope", "hang up"} {
		got, err := o.call(t, "send", `{"t": "`+how+`"}`)
		if (err == nil) != (how == "result") {
			t.Errorf("%s: got %s, %v", how, got, err)
		}
		told := []string{got, o.log.String()}
		if failed, ok := errors.AsType[*source.CallError](err); ok {
			told = append(told, failed.Message, fmt.Sprintf("%v %+v %v", err, failed, failed.Err))
			for cause := err; cause != nil; cause = errors.Unwrap(cause) {
				told = append(told, cause.Error())
			}
			if strings.Contains(failed.Message, "elsewhere") {
				t.Errorf("%s: the program is told %s", how, failed.Message)
			}
		} else if got != `{"k":"***","***":1}` {
			t.Errorf("%s: got %s", how, got)
		}
		if how == "envelope" {
			mustFail(t, err, "wrong key ***")
		}
		if all := strings.Join(told, "\n"); strings.Contains(all, "secret of") {
			t.Errorf("%s: told %s", how, all)
		}
	}
	all, err := json.Marshal(o.Toolsets())
	if err != nil || bytes.Contains(all, []byte("secret of")) {
		t.Errorf("the toolsets tell the secret: %v", err)
	}
}

// TestT6Large has an answer that is larger than a result may be.
func TestT6Large(t *testing.T) {
	o := open(t, echoFile, "", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `"`+strings.Repeat("x", 20_000)+`"`)
	})
	_, err := o.call(t, "send", `{}`)
	mustFail(t, err, "the endpoint's answer is too large: the limit is 10000 bytes; whether the call took effect is unknown")
}

// TestT31Turns fills a toolset, which runs two calls at the same time, with calls of one principal. A call of
// another principal must not wait for all of them.
func TestT31Turns(t *testing.T) {
	const file = `toolsets:
  api:
    private: true
    concurrency: 2
    http:
      base_url: URL
      tools: [{name: wait, method: POST, path: /wait, parameters: {type: object, properties: {t: {type: string}}}}]
`
	var mu sync.Mutex
	running, most, order := 0, 0, []string{}
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	o := open(t, file, "", func(_ http.ResponseWriter, r *http.Request) {
		var body struct{ T string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		mu.Lock()
		running++
		most = max(most, running)
		order = append(order, body.T)
		mu.Unlock()
		arrived <- struct{}{}
		<-release
		mu.Lock()
		running--
		mu.Unlock()
	})
	var calls sync.WaitGroup
	begin := func(principal string) {
		calls.Go(func() {
			if _, err := o.Call(t.Context(), tools.Request{Toolset: "api", Tool: "wait", Principal: principal, Input: json.RawMessage(`{"t": "` + principal + `"}`)}); err != nil {
				t.Error(err)
			}
		})
	}
	begin("mallory")
	<-arrived
	begin("mallory")
	<-arrived
	for range 20 {
		begin("mallory")
	}
	time.Sleep(time.Second) // Mallory's calls must wait before the other call arrives.
	begin("alice")
	time.Sleep(time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := o.Call(ctx, tools.Request{Toolset: "api", Tool: "wait", Principal: "bob"})
	mustFail(t, err, "the call was cancelled")
	close(release)
	calls.Wait()
	// Alice's call is the second one to get a place. Calls that get a place later may arrive earlier.
	if most != 2 || len(order) != 23 || !strings.Contains(strings.Join(order[:12], " "), "alice") {
		t.Errorf("%d calls at the same time; order %v", most, order)
	}
}
