package timeline

import (
	"encoding/json"
	"maps"
	"net/http"
	"testing"

	"fermata/tests/harness"
)

// standard returns a client of a shared server with the changed settings.
func standard(t *testing.T, s harness.Setup, changes harness.Settings) harness.Client {
	t.Helper()
	return harness.Serve(t, s, changes).Alice()
}

// A path starts a program and returns the answer to it.
type path struct {
	name string
	post func(t *testing.T, c harness.Client, members map[string]any) harness.Answer
}

// paths are the paths that start programs.
var paths = []path{
	{"programmatic", func(t *testing.T, c harness.Client, members map[string]any) harness.Answer {
		t.Helper()
		return c.Post(t, members)
	}},
	{"exec", func(t *testing.T, c harness.Client, members map[string]any) harness.Answer {
		t.Helper()
		return c.Exec(t, nil, members).Answer
	}},
}

// body returns a start with these members beside its program.
func body(code string, members map[string]any) map[string]any {
	all := map[string]any{"lang": "python", "code": code}
	maps.Copy(all, members)
	return all
}

// refuses checks that an answer is 400 with this error, and that nothing has run.
func refuses(t *testing.T, a harness.Answer, text string) {
	t.Helper()
	var e struct{ Error string }
	if err := json.Unmarshal([]byte(a.Raw), &e); err != nil || a.HTTPStatus != http.StatusBadRequest || e.Error != text {
		t.Errorf("got %v, want 400 %s", a, text)
	}
	if id := a.Header.Get("Fermata-Execution"); id != "" {
		t.Errorf("%s: the execution %s was begun", text, id)
	}
}
