package engine

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
)

// A continuation of an execution that is over is told how it has ended: by the record, and once that
// has run out, by the summary of the journal. Another principal is told nothing.
func TestOver(t *testing.T) {
	p := newPair(t, time.Minute)
	e := p.engines["a.1"]
	for name, c := range map[string]struct {
		state          core.State
		reason, detail string
		want           core.ExpiredError
	}{
		"completed":               {core.Completed, "", "", core.ExpiredError{Reason: "finished", Detail: "The program has completed"}},
		"failed":                  {core.Failed, "raised", "", core.ExpiredError{Reason: "finished", Detail: "The program has ended with an error"}},
		"lost":                    {core.Failed, "sandbox_lost", "", core.ExpiredError{Reason: "sandbox_lost", Detail: core.SandboxEnded}},
		"timed out":               {core.TimedOut, "", "It stood at line 3", core.ExpiredError{Reason: "timed_out", Detail: "It stood at line 3"}},
		"timed out, of old":       {core.TimedOut, "", "", core.ExpiredError{Reason: "timed_out", Detail: "The program has used up its run budget"}},
		"cancelled":               {core.Cancelled, "", "", core.ExpiredError{Reason: "cancelled", Detail: "The execution was cancelled"}},
		"expired":                 {core.Expired, "", "The pause ran out after 300 s", core.ExpiredError{Reason: "expired", Detail: "The pause ran out after 300 s"}},
		"the machine was started": {core.Expired, "sandbox_lost", journal.MachineRestarted, core.ExpiredError{Reason: "sandbox_lost", Detail: journal.MachineRestarted}},
	} {
		for kept, ttl := range map[string]time.Duration{"a record": time.Hour, "a journal": time.Millisecond} {
			r := continuation.Record{
				ID: uuid.NewString(), Session: "s", Principal: "ada", State: string(c.state), Version: 1, Round: 1, Created: time.Now(),
				Reason: c.reason, Detail: c.detail,
			}
			summary, err := json.Marshal(journal.Summary{Status: core.StatusOf(c.state), Reason: c.reason, Detail: c.detail})
			if err != nil {
				t.Fatal(err)
			}
			chapter := continuation.Chapter{First: 1, Life: time.Hour, Summary: &continuation.Summary{
				ID: r.ID, Principal: r.Principal, Created: r.Created, Ended: true, Content: summary,
			}}
			if err := e.o.Store.Put(t.Context(), r, ttl, chapter); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Millisecond)
			token, err := e.o.Signer.Sign(continuation.Claims{Execution: r.ID, Session: "s", Principal: "ada", Round: 1, Expires: time.Now().Add(time.Minute)})
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.Resume(t.Context(), Resume{Principal: "ada", Token: token, Request: "r", Results: []core.Result{{CallID: "call_001"}}})
			if over, ok := errors.AsType[*core.ExpiredError](err); !ok || *over != c.want || !errors.Is(err, core.ErrExpired) {
				t.Errorf("%s, of which there is %s: got %+v, want %+v", name, kept, err, c.want)
			}
			if _, err = e.Resume(t.Context(), Resume{Principal: "bob", Token: token, Request: "r"}); !errors.Is(err, ErrForbidden) {
				t.Errorf("%s, another principal: got %v, want %v", name, err, ErrForbidden)
			}
		}
	}
}
