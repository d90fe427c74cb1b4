package librechat_test

import (
	"net/http"
	"strings"
	"testing"

	"fermata/api/auth"
	"fermata/engine"
	"fermata/engine/core"
)

// Every answer that belongs to an execution says to which.
func TestExecutionHeader(t *testing.T) {
	const (
		id     = "0d4ff2a4-8c0d-4b0e-8d53-54b4ec3ce3f8"
		plain  = `{"code":"#","lang":"py"}`
		resume = `{"continuation_token":"t","tool_results":[{"call_id":"call_001"}]}`
		bad    = `{"continuation_token":"genuine ` + id + `","tool_results":{}}`
	)
	of := func(o core.Outcome, err error) *script {
		o.Execution, o.Session = id, session
		return &script{outcome: o, err: err}
	}
	done, paused := core.Outcome{State: core.Completed}, core.Outcome{State: core.Paused, Token: "t"}
	for _, c := range []struct {
		name   string
		e      *script
		call   call
		status int
		want   string
	}{
		{"a program without tools", of(done, nil), call{path: "/exec", body: plain}, 200, id},
		{"the end", of(done, nil), call{body: plain}, 200, id},
		{"a pause", of(paused, nil), call{body: plain}, 200, id},
		{"a failed program", of(core.Outcome{State: core.TimedOut}, nil), call{body: plain}, 408, id},
		{"a program that the sandbox lost", of(core.Outcome{State: core.Failed, Reason: core.SandboxLost}, nil), call{path: "/exec", body: plain}, 502, id},
		{"a continuation", of(paused, nil), call{body: resume}, 200, id},
		{"another's execution", of(core.Outcome{}, engine.ErrForbidden), call{body: resume}, 403, id},
		{"an execution that has ended", of(core.Outcome{}, core.ErrExpired), call{body: resume}, 400, id},
		{"a continuation in flight", of(core.Outcome{}, engine.ErrInFlight), call{body: resume}, 409, id},
		{"the store away", of(core.Outcome{}, engine.ErrOwnerAway), call{body: resume}, 503, id},
		{"trouble", of(core.Outcome{}, http.ErrBodyNotAllowed), call{body: resume}, 500, id},
		{"a key that was used for another start", of(core.Outcome{}, engine.ErrKeyReused), call{body: plain, header: map[string]string{"Idempotency-Key": "k"}}, 409, id},
		{"results that the engine never sees", completed(), call{body: bad}, 400, id},
		{"a header that the engine never sees", completed(), call{body: bad, header: map[string]string{"X-LibreChat-Code-Workspace-ID": "w"}}, 400, id},

		{"a token that is not genuine", &script{err: core.ErrExpired}, call{body: resume}, 400, ""},
		{"a malformed start", of(done, nil), call{body: `{}`}, 400, ""},
		{"no sandbox", &script{err: engine.ErrNoCapacity}, call{body: plain}, 503, ""},
		{"no key", of(done, nil), call{body: bad, header: map[string]string{"X-API-Key": ""}}, 401, ""},
		{"an operator", of(done, nil), call{body: bad, header: map[string]string{"X-API-Key": "operator-key"}}, 403, ""},
		{"another route", of(done, nil), call{path: path + "/cancel", body: plain}, 400, ""},
	} {
		o := options()
		o.Keys = append(o.Keys, auth.Key{Name: "ops", Key: "operator-key", Operator: true})
		w := c.call.do(t, newHandler(c.e, o))
		if got := w.Header().Values("Fermata-Execution"); w.Code != c.status || strings.Join(got, ",") != c.want {
			t.Errorf("%s: got %d %s with %q, want %d with %q", c.name, w.Code, w.Body, got, c.status, c.want)
		}
	}
}
