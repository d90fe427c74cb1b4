package engine

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/stubs"
)

// Whoever holds a genuine token learns to which execution an answer belongs, whatever the answer is
// and whichever server gives it.
func TestOutcomesNameTheirExecution(t *testing.T) {
	p := newPair(t, time.Minute)
	paused, x := p.start(t, "a.1")
	if paused.Execution != x.id {
		t.Errorf("Start names execution %q, want %q", paused.Execution, x.id)
	}
	wrong, err := p.engines["a.1"].o.Signer.Sign(continuation.Claims{
		Execution: "11111111-1111-4111-8111-111111111111", Session: "s", Principal: "ada", Round: 1, Expires: time.Now().Add(time.Minute),
	})
	if err != nil {
		t.Fatal(err)
	}
	old, err := p.engines["a.1"].o.Signer.Sign(continuation.Claims{
		Execution: x.id, Session: "s", Principal: "ada", Round: 1, Expires: time.Now().Add(-time.Minute),
	})
	if err != nil {
		t.Fatal(err)
	}
	good := []core.Result{{CallID: "call_001"}}
	for _, c := range []struct {
		name, on         string
		principal, token string
		request          string
		results          []core.Result
		want             string
		err              error
	}{
		{"a forged token", "a.1", "ada", paused.Token + "x", "r", good, "", continuation.ErrToken},
		{"another's", "a.1", "bob", paused.Token, "r", good, x.id, ErrForbidden},
		{"another's, elsewhere", "b.1", "bob", paused.Token, "r", good, x.id, ErrForbidden},
		{"an expired token", "a.1", "ada", old, "r", good, x.id, core.ErrExpired},
		{"a wrong result", "a.1", "ada", paused.Token, "r", []core.Result{{CallID: "call_002"}}, x.id, &core.ResultError{CallID: "call_002"}},
		{"a wrong result, elsewhere", "b.1", "ada", paused.Token, "r", []core.Result{{CallID: "call_002"}}, x.id, &core.ResultError{CallID: "call_002"}},
		{"an execution that is gone", "b.1", "ada", wrong, "r", good, "11111111-1111-4111-8111-111111111111", core.ErrExpired},
		{"the end, elsewhere", "b.1", "ada", paused.Token, "r", good, x.id, nil},
		{"the same again", "a.1", "ada", paused.Token, "r", good, x.id, nil},
		{"the same again, elsewhere", "b.1", "ada", paused.Token, "r", good, x.id, nil},
		{"after the end", "a.1", "ada", paused.Token, "other", good, x.id, core.ErrExpired},
	} {
		e := p.engines[c.on]
		got, err := e.Resume(t.Context(), Resume{Principal: c.principal, Token: c.token, Request: c.request, Results: c.results})
		same := errors.Is(err, c.err)
		if wrong, ok := errors.AsType[*core.ResultError](c.err); ok {
			is, ok := errors.AsType[*core.ResultError](err)
			same = ok && *is == *wrong
		}
		if got.Execution != c.want || !same {
			t.Errorf("%s: Resume names execution %q, and says %v; want %q, %v", c.name, got.Execution, err, c.want, c.err)
		}
		if got := e.ExecutionOf(c.token); got != c.want {
			t.Errorf("%s: ExecutionOf = %q, want %q", c.name, got, c.want)
		}
	}
}

// A start with a key names its execution, also when it is refused because of it.
func TestKeyedStartsNameTheirExecution(t *testing.T) {
	p := newPair(t, time.Minute)
	start := func(on, request, code string) (core.Outcome, error) {
		return p.engines[on].Start(t.Context(), Start{
			Principal: "ada", Session: "s", Code: json.RawMessage(code), Tools: []stubs.Tool{{Name: "ask"}}, Timeout: time.Minute, Key: "k", Request: request,
		})
	}
	first, err := start("a.1", "r", `"ask"`)
	if err != nil || first.Execution == "" {
		t.Fatalf("Start = %+v, %v, want an execution", first, err)
	}
	for _, on := range []string{"a.1", "b.1"} {
		if again, err := start(on, "r", `"ask"`); err != nil || again.Execution != first.Execution {
			t.Errorf("the same start on %s = %+v, %v, want execution %s", on, again, err, first.Execution)
		}
		if other, err := start(on, "s", `"end"`); !errors.Is(err, ErrKeyReused) || other.Execution != first.Execution {
			t.Errorf("another start with the key on %s = %+v, %v, want ErrKeyReused of execution %s", on, other, err, first.Execution)
		}
	}
}
