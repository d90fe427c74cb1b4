package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fermata/continuation"
	"fermata/engine/sandbox"
)

// attachTimeout bounds a take-over, and how long the sandbox may take to answer in it.
const attachTimeout = 10 * time.Second

// takeOver makes this server the owner of an execution whose server has died, and goes on
// with it from the state in which its sandbox is. Of several servers that try, the store
// accepts the first one, before any of them touches the sandbox. The others get ErrConflict,
// and so does a second call on this server while the first one is under way. ErrGone means
// that this server cannot reach the sandbox and has changed nothing.
func (e *Engine) takeOver(ctx context.Context, record continuation.Record) (*execution, error) {
	if !e.executions.adopt(record.ID) {
		return nil, continuation.ErrConflict
	}
	defer e.executions.adopted(record.ID)
	// A take-over that has begun does not end with the request that led to it.
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
			// The client has lost its connection and may come back: the record keeps the answer
			// for as long as a pause may last.
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
	if err != nil && e.executions.isClosed() {
		return nil, ErrClosing // The next server can try again.
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
	x := e.newExecution(c, sb, e.quota.adopt(record.Principal, stored))
	x.stored = stored
	sb.CountBy(x.counted)
	if err := e.executions.register(x); err != nil {
		x.counted.drop()
		e.pool.Abandon(sb)
		return nil, err
	}
	e.tally.note([]event{{kind: takenOverEvent}})
	go func() {
		defer e.executions.forget(x)
		x.relive(at)
	}()
	return x, nil
}

// reaches reports whether this server can reach a sandbox.
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

// errBuried means that takeOver found no sandbox and recorded the end of the execution. The
// caller finds the answer in the record when it tries again.
var errBuried = fmt.Errorf("%w, with its sandbox", ErrOwnerAway)

// bury records the end of an execution whose sandbox is gone, and returns errBuried if that
// succeeds.
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

// inherit compares the record of an execution that this server has just taken over with what
// its sandbox says, and returns where the execution stands. An error means that the answer that
// the record of a paused execution keeps cannot be read.
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
		// The start was recorded and the program never arrived, or the round was claimed and
		// the results never arrived.
		at = undelivered
	default:
		// The program runs, or has come to rest since; the supervisor repeats what it said.
		c.segment = newSegment(r.Round, r.Request)
	}
	return at, errors.Join(err, c.stand(at))
}
