package contract

import (
	"net/http"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestOperators has an operator try everything that there is with the execution and the file of
// somebody else. It may look, and change nothing.
func TestOperators(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, setup harness.Setup) {
		s := harness.Serve(t, setup, harness.Settings{"OPERATOR_KEYS": "ops:key-o"})
		alice, operator := s.Alice(), harness.Client{URL: s.URL, Key: "key-o"}
		file := alice.Upload(t, harness.OneFile("a.txt", "of alice"))
		pause := alice.Pause(t, harness.Program{Code: "print(await ask())", Tools: harness.Tools("ask")})
		id := pause.Header.Get("Fermata-Execution")
		object := file.Storage + "/" + file.ID
		for _, r := range []struct {
			method, path string
			body         any
		}{
			{"POST", harness.Programmatic, harness.Program{Code: "print(1)"}},
			{"POST", harness.Programmatic, harness.Continuation{Token: pause.Token, Results: []harness.Result{{CallID: "call_001"}}}},
			{"POST", harness.Programmatic, "{"},
			{"POST", "/exec", map[string]string{"lang": "py", "code": "print(1)"}},
			{"POST", harness.Programmatic + "/cancel", map[string]string{"request_id": "0123456789abcdef"}},
			{"POST", "/upload", nil},
			{"POST", "/upload/batch", nil},
			{"DELETE", "/files/" + object + "?principal=alice", nil},
			{"DELETE", "/sessions/" + file.Storage + "/objects/" + file.ID + "?principal=alice", nil},
			{"DELETE", "/executions/" + id, nil},
		} {
			for _, prefix := range []string{"", "/v1"} {
				a, err := operator.Request(t.Context(), r.method, prefix+r.path, http.Header{"Accept": {"text/event-stream"}}, r.body)
				if err != nil || a.HTTPStatus != http.StatusForbidden || !strings.Contains(a.Error, "FERMATA_OPERATOR_KEYS") {
					t.Errorf("%s %s: got %v %v, want 403 that names the setting", r.method, prefix+r.path, a, err)
				}
			}
		}
		for path, want := range map[string]string{
			"/executions?principal=alice": id, "/executions/" + id: `"principal":"alice"`, "/executions/" + id + "/events": `"execution.paused"`,
			"/v1/executions/" + id + "/calls": `"call_001"`, "/calls": id,
			"/download/" + object + "?principal=alice":                                      "of alice",
			"/files/" + file.Storage + "?principal=alice":                                   object,
			"/sessions/" + file.Storage + "/objects/" + file.ID + "?principal=alice":        "a.txt",
			"/v1/download/" + object + "?principal=alice&kind=user&id=somebody&version=":    "of alice",
			"/v1/files/" + file.Storage + "?detail=normalized&principal=alice&entity_id=as": file.ID,
		} {
			if r := operator.Files(t, "GET", path); r.HTTPStatus != http.StatusOK || !strings.Contains(r.Body, want) {
				t.Errorf("GET %s: got %v, want 200 with %s", path, r, want)
			}
		}
		if r := operator.Files(t, "GET", "/download/"+object+"?principal=bob"); r.HTTPStatus != http.StatusForbidden {
			t.Errorf("the file of alice as bob's: got %v, want 403", r)
		}
		if r := s.Bob().Files(t, "GET", "/download/"+object+"?principal=alice"); r.HTTPStatus != http.StatusForbidden {
			t.Errorf("a client that says whose the file is: got %v, want 403", r)
		}
		// Nothing has changed.
		end := alice.Post(t, harness.Continuation{Token: pause.Token, Results: []harness.Result{{CallID: "call_001", Result: []byte(`"yes"`)}}})
		if end.Status != "completed" || end.Stdout != "yes\n" {
			t.Errorf("alice continues: got %v, want the end", end)
		}
		if got := alice.Download(t, file); got != "of alice" {
			t.Errorf("alice's file is %q", got)
		}
		again := alice.Pause(t, harness.Program{Code: "print(await ask())", Tools: harness.Tools("ask")})
		cancel, err := operator.Request(t.Context(), "POST", "/executions/"+again.Header.Get("Fermata-Execution")+"/cancel", nil, nil)
		if err != nil || cancel.HTTPStatus != http.StatusAccepted {
			t.Errorf("cancelling: got %v %v, want 202", cancel, err)
		}
		for member, value := range map[string]func(harness.Answer) string{
			"execution_id":       func(a harness.Answer) string { return a.Header.Get("Fermata-Execution") },
			"continuation_token": func(a harness.Answer) string { return a.Token },
			"session_id":         func(a harness.Answer) string { return a.Session },
		} {
			a := cancelBy(t, operator, member, value(alice.Pause(t, harness.AskOnce)))
			if a.HTTPStatus != http.StatusOK || !strings.Contains(a.Raw, `"status":"cancelled"`) {
				t.Errorf("cancelling by %s: got %v, want 200 cancelled", member, a)
			}
		}
		if log := s.Log.All(); !strings.Contains(log, "principal=ops") || strings.Contains(log, "key-o") {
			t.Errorf("the log is %s, want the operator's name and not the key", log)
		}
	})
}

// TestAmbiguousKeysAreRefused starts servers whose keys do not say who a principal is.
func TestAmbiguousKeysAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings harness.Settings
		want     string
	}{
		"one key in both lists":  {harness.Settings{"OPERATOR_KEYS": "ops:key-a"}, "same key, as that of alice and of ops"},
		"one name in both lists": {harness.Settings{"OPERATOR_KEYS": "alice:key-o"}, "have the name alice"},
		"one key, two clients":   {harness.Settings{"API_KEYS": "alice:key-a,bob:key-a"}, "alice and bob have the same key"},
		"a name of a user":       {harness.Settings{"API_KEYS": "jwt:acme:alice:key-a"}, "may have the name"},
		"the name of everyone":   {harness.Settings{"OPERATOR_KEYS": "anonymous:key-o"}, "may have the name"},
		"an open server":         {harness.Settings{"AUTH": "off", "API_KEYS": "", "OPERATOR_KEYS": "ops:key-o"}, "FERMATA_AUTH=off"},
		"origins with a path":    {harness.Settings{"CORS_ORIGINS": "https://a.example/"}, "https://a.example/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := harness.NewServer(harness.With(harness.Common, c.settings))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.RemoveGroups() }()
			if err := s.Start(); err == nil {
				harness.StopAfter(t, s)
				t.Fatal("the server has started, want it refused")
			}
			if log := s.Log.All(); !strings.Contains(log, c.want) || strings.Contains(log, "key-o") {
				t.Errorf("the server says %q, want %q and no key", log, c.want)
			}
		})
	}
}
