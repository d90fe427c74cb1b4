package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fermata/continuation"
	"fermata/engine/sandbox"
)

// attachTimeout bounds how long a sandbox that is taken over may take to answer.
const attachTimeout = 10 * time.Second

// takeOver makes this server the owner of an execution whose server has died, and
// goes on with it in the state in which its sandbox is. Of servers that try at once
// the store lets one pass, before it touches the sandbox: the others, and whoever
// tries while this one does, get ErrConflict. ErrGone means that the sandbox cannot
// be reached from here and nothing was changed.
func (e *Engine) takeOver(ctx context.Context, record continuation.Record) (*execution, error) {
	if !e.adopt(record.ID) {
		return nil, continuation.ErrConflict
	}
	defer e.adopted(record.ID)
	// It does not end with a request half way.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attachTimeout)
	defer cancel()
	defer context.AfterFunc(e.clearing, cancel)()
	here, err := e.reaches(ctx, record.Sandbox)
	if err != nil {
		return nil, err
	}
	if !here && !e.members.succeeds(record.Owner) && record.Owner != e.members.instance {
		return nil, fmt.Errorf("%w: %s", sandbox.ErrGone, record.Sandbox)
	}
	c := newConversation(e.newLedger(record))
	err = c.own(ctx, func(next *continuation.Record) {
		if State(next.State) == Running {
			// Its client comes back, or not; until then the answer waits.
			next.Deadline = time.Now().Add(next.Budget - next.Spent + e.o.PauseTTL)
		}
	})
	if err != nil {
		return nil, err
	}
	if !here {
		return nil, c.bury()
	}
	sb, err := e.pool.Adopt(ctx, record.Sandbox, record.Marker)
	if err != nil && e.isClosed() {
		return nil, ErrClosing // The next server may have more time.
	}
	if err != nil {
		e.o.Log.Warn("an execution is lost with its sandbox", "execution", record.ID, "err", err)
		defer e.pool.Destroy(e.clearing, record.Sandbox)
		return nil, c.bury()
	}
	c.spend(max(0, sb.Hello.Ran))
	at, err := c.inherit(sb.Hello)
	if err != nil {
		e.o.Log.Warn("cannot read the kept answer of an execution", "execution", record.ID, "err", err)
	}
	stored := weight(record) + int64(len(record.Answer))
	x := newExecution(e, c, sb, e.quota.adopt(record.Principal, stored))
	x.stored = stored
	sb.CountBy(x.counted)
	if err := e.register(x); err != nil {
		x.counted.drop()
		e.pool.Abandon(sb)
		return nil, err
	}
	e.tally.note([]event{{kind: takenOverEvent}})
	go x.relive(at)
	return x, nil
}

// adopt notes that an execution is being taken over. It reports false if it is
// already, or lives here.
func (e *Engine) adopt(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.executions[id] != nil || e.adopting[id] {
		return false
	}
	e.adopting[id] = true
	return true
}

func (e *Engine) adopted(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.adopting, id)
}

// reaches reports whether a sandbox can be reached from here.
func (e *Engine) reaches(ctx context.Context, ref string) (bool, error) {
	found, err := e.o.Provider.List(ctx)
	if err != nil {
		return false, fmt.Errorf("list sandboxes: %w", err)
	}
	for _, s := range found {
		if s.Ref == ref {
			return true, nil
		}
	}
	return false, nil
}

// errBuried means that the end of an execution has just been recorded: a look at the
// record tells the rest.
var errBuried = fmt.Errorf("%w, with its sandbox", ErrOwnerAway)

// bury records the end of an execution of this server whose sandbox is gone. If that
// succeeds it returns errBuried.
func (c *conversation) bury() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	outcome := Outcome{State: Expired, Session: c.record.Session}
	if State(c.record.State) == Running {
		outcome.State, outcome.Reason = Failed, SandboxLost
	}
	if err := c.end(outcome.State, outcome, 0); err != nil {
		return err
	}
	return errBuried
}

// inherit finds out where an execution stands that this server has just taken over, by its
// record and by what the sandbox says. An error means that the answer to the request before
// a pause cannot be read.
func (c *conversation) inherit(h sandbox.Hello) (standing, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, at := c.record, running
	var err error
	switch {
	case State(r.State) == Paused:
		at = paused
		var answer Outcome
		answer, err = lastAnswer(r)
		c.segment = answered(r.Round-1, r.Request, answer, err)
	case h.State == sandbox.Ready && r.Round == 0, h.State == sandbox.Paused && h.Round == r.Round:
		// The start was recorded and its program never arrived; or the round was claimed and
		// its results never arrived.
		at = undelivered
	default:
		// It runs, or came to rest when nobody listened, which it repeats.
		c.segment = newSegment(r.Round, r.Request)
	}
	return at, errors.Join(err, c.stand(at))
}
