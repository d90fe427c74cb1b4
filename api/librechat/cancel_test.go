package librechat_test

import (
	"errors"
	"slices"
	"testing"

	"fermata/continuation"
	"fermata/engine"
)

// TestCancelTargets cancels by everything that names an execution.
func TestCancelTargets(t *testing.T) {
	const (
		requested, done, completed = `{"status":"cancellation_requested"}`, `{"status":"cancelled"}`, `{"status":"already_completed"}`
		missing                    = `{"error":"Execution not found"}`
	)
	both := func(a, b string) string {
		return `{"error":"` + a + ` and ` + b + ` both say what to cancel: send one of request_id, execution_id, continuation_token and session_id"}`
	}
	byExecution, byToken := &engine.Cancel{Principal: "ada", Execution: "x"}, &engine.Cancel{Principal: "ada", Token: "t.o/k"}
	bySession := &engine.CancelSession{Principal: "ada", Session: "s"}
	for _, c := range []struct {
		body       string
		cancelling engine.Cancelling
		err        error
		cancel     *engine.Cancel
		session    *engine.CancelSession
		status     int
		answer     string
	}{
		{`{"execution_id":"x"}`, engine.CancelRequested, nil, byExecution, nil, 202, requested},
		{`{"execution":"x","session_id":null,"other":1}`, engine.CancelDone, nil, byExecution, nil, 200, done},
		{`{"execution_id":"x"}`, engine.CancelCompleted, nil, byExecution, nil, 200, completed},
		{`{"execution_id":"x"}`, engine.CancelUnknown, nil, byExecution, nil, 404, missing},
		{`{"execution_id":"x"}`, "", errors.New("down"), byExecution, nil, 503, `{"error":"Cancellation service unavailable"}`},
		{`{"continuation_token":"t.o/k"}`, engine.CancelDone, nil, byToken, nil, 200, done},
		{`{"continuation_token":"t.o/k"}`, engine.CancelUnknown, nil, byToken, nil, 404, missing},
		{`{"continuation_token":"t.o/k"}`, "", continuation.ErrToken, byToken, nil, 400, `{"error":"Invalid continuation token"}`},
		{`{"session_id":"s"}`, engine.CancelRequested, nil, nil, bySession, 202, `{"status":"cancellation_requested","cancelled":3}`},
		{`{"session_id":"s"}`, engine.CancelDone, nil, nil, bySession, 200, `{"status":"cancelled","cancelled":3}`},
		{`{"session_id":"s"}`, engine.CancelUnknown, nil, nil, bySession, 404, `{"error":"No execution of this session was found"}`},
		{`{"execution_id":7}`, "", nil, nil, nil, 400, `{"error":"execution_id must be a non-empty string"}`},
		{`{"execution":""}`, "", nil, nil, nil, 400, `{"error":"execution must be a non-empty string"}`},
		{`{"continuation_token":["t"]}`, "", nil, nil, nil, 400, `{"error":"continuation_token must be a non-empty string"}`},
		{`{"session_id":{}}`, "", nil, nil, nil, 400, `{"error":"session_id must be a non-empty string"}`},
		{`{"request_id":"0123456789abcdef","session_id":"s"}`, "", nil, nil, nil, 400, both("request_id", "session_id")},
		{`{"continuation_token":"t","execution":"x"}`, "", nil, nil, nil, 400, both("execution", "continuation_token")},
		{`{"execution_id":"x","execution":"x"}`, "", nil, nil, nil, 400, both("execution_id", "execution")},
	} {
		e := &script{cancelling: c.cancelling, err: c.err, cancelled: 3}
		w := call{path: path + "/cancel", body: c.body}.do(t, newHandler(e, options()))
		if w.Code != c.status || w.Body.String() != c.answer {
			t.Errorf("%s: got %d %s, want %d %s", c.body, w.Code, w.Body, c.status, c.answer)
		}
		var cancels []engine.Cancel
		var sessions []engine.CancelSession
		if c.cancel != nil {
			cancels = append(cancels, *c.cancel)
		}
		if c.session != nil {
			sessions = append(sessions, *c.session)
		}
		if !slices.Equal(e.cancels, cancels) || !slices.Equal(e.sessions, sessions) {
			t.Errorf("%s: asked for %+v and %+v, want %+v and %+v", c.body, e.cancels, e.sessions, cancels, sessions)
		}
	}
}

// Operators end the executions of everybody, but requests are their senders' own.
func TestOperatorsCancel(t *testing.T) {
	e := &script{cancelling: engine.CancelDone, cancelled: 1}
	h := withOperator(t, e, nil)
	for _, c := range []struct {
		body   string
		status int
	}{
		{`{"execution_id":"x"}`, 200},
		{`{"continuation_token":"t.o/k"}`, 200},
		{`{"session_id":"s"}`, 200},
		{`{"request_id":"0123456789abcdef"}`, 403},
		{`{}`, 403},
	} {
		if w := (call{path: path + "/cancel", body: c.body, header: map[string]string{"X-API-Key": "operator-key"}}).do(t, h); w.Code != c.status {
			t.Errorf("%s: got %d %s, want %d", c.body, w.Code, w.Body, c.status)
		}
	}
	if want := []engine.Cancel{{Execution: "x"}, {Token: "t.o/k"}}; !slices.Equal(e.cancels, want) || !slices.Equal(e.sessions, []engine.CancelSession{{Session: "s"}}) {
		t.Errorf("asked for %+v and %+v, want %+v and the session, whoever's they are", e.cancels, e.sessions, want)
	}
}
