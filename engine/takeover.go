package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
	"fermata/engine/sandbox"
)

// A successor takes over executions whose server has died.
type successor struct {
	*common
	executions *executionTable
	// clearing ends, by stop, before the executions do: take-overs stop when Close begins.
	clearing context.Context //nolint:containedctx // take-overs and sweeps outlive every request
	stop     context.CancelFunc
}

func newSuccessor(ctx context.Context, m *common, executions *executionTable) *successor {
	s := &successor{common: m, executions: executions}
	s.clearing, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	return s
}

// takeOver makes this server the owner of an execution whose server has died, and goes on
// with it from the state in which its sandbox is. Of several servers that try, the store
// accepts the first one, before any of them touches the sandbox. The others get ErrConflict,
// and so does a second call on this server while the first one is under way. ErrGone means
// that this server cannot reach the sandbox and has changed nothing.
func (s *successor) takeOver(ctx context.Context, record continuation.Record) (*execution, error) {
	if !s.executions.adopt(record.ID) {
		return nil, continuation.ErrConflict
	}
	defer s.executions.adopted(record.ID)
	// A take-over that has begun does not end with the request that led to it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attachTimeout)
	defer cancel()
	defer context.AfterFunc(s.clearing, cancel)()
	if isStandalone(record) {
		chronicle, err := s.continued(ctx, record)
		if err != nil {
			return nil, fmt.Errorf("read the journal of a call, execution %s: %w", record.ID, err)
		}
		return nil, buryCall(s.newLedger(record, chronicle), journal.ServerName(record.Owner))
	}
	here, err := s.reaches(ctx, record.Sandbox)
	if err != nil {
		return nil, err
	}
	if !here && !s.members.Succeeds(record.Owner) && record.Owner != s.members.Instance() {
		return nil, fmt.Errorf("%w: %s", sandbox.ErrGone, record.Sandbox)
	}
	chronicle, err := s.continued(ctx, record)
	if err != nil {
		return nil, fmt.Errorf("read the journal of execution %s: %w", record.ID, err)
	}
	c := newConversation(s.newLedger(record, chronicle))
	err = c.own(func(next *continuation.Record) {
		if core.State(next.State) == core.Running {
			// The client has lost its connection and may come back: the record keeps the answer
			// for as long as a pause may last.
			next.Deadline = time.Now().Add(next.Budget - next.Spent + s.o.PauseTTL)
		}
	})
	if err != nil {
		return nil, err
	}
	if !here {
		return nil, bury(c.ledger, journal.ServerName(record.Owner), nil)
	}
	return s.attach(ctx, c, record)
}

// attach goes on with an execution that this server owns now. record is that of the server that has died.
func (s *successor) attach(ctx context.Context, c *conversation, record continuation.Record) (*execution, error) {
	from := journal.ServerName(record.Owner)
	if core.State(record.State) == core.Running && !core.Repeatable(record) {
		// Its client was waiting for the server that has died, and cannot ask again.
		defer s.pool.Destroy(s.clearing, record.Sandbox)
		return nil, bury(c.ledger, from, nil)
	}
	sb, err := s.pool.Adopt(ctx, record.Sandbox, record.Marker)
	if err != nil && s.executions.isClosed() {
		return nil, ErrClosing // The next server can try again.
	}
	if err != nil {
		defer s.pool.Destroy(s.clearing, record.Sandbox)
		return nil, bury(c.ledger, from, err)
	}
	c.spend(max(0, sb.Hello.Ran))
	at, err := inherit(c, sb.Hello)
	if err != nil {
		s.o.Log.Warn("cannot read the kept answer of an execution", "execution", record.ID, "err", err)
	}
	stored := core.Weight(record) + int64(len(record.Answer))
	mandate, err := s.inherited(record)
	if err != nil {
		// It goes on without: the calls that it makes then end it.
		s.o.Log.Warn("cannot read what an execution may call", "execution", record.ID, "err", err)
	}
	x, counted := newExecution(c, sb), s.quota.Adopt(record.Principal, stored)
	l := s.newLife(x, counted, mandate)
	l.stored = stored
	counted.Ask(core.Asked(record.Pending), true)
	sb.CountBy(counted)
	if err := s.executions.register(x.id, x); err != nil {
		mandate.release()
		counted.Drop()
		s.pool.Abandon(sb)
		return nil, err
	}
	s.tally.note([]event{{kind: takenOverEvent}})
	s.o.logTakenOver(record, at)
	go func() {
		defer close(x.ended)
		defer s.executions.forget(x.id)
		l.relive(at)
	}()
	return x, nil
}

// reaches reports whether this server can reach a sandbox.
func (s *successor) reaches(ctx context.Context, ref string) (bool, error) {
	found, err := s.o.Provider.List(ctx)
	if err != nil {
		return false, fmt.Errorf("list sandboxes: %w", err)
	}
	for _, sb := range found {
		if sb.Ref == ref {
			return true, nil
		}
	}
	return false, nil
}

// bury records the end of an execution of the server from, whose sandbox is gone, and returns
// errBuried if that succeeds. cause tells the log more, if it is not nil.
func bury(c *ledger, from string, cause error) error {
	outcome := core.Outcome{State: core.Expired, Session: c.record.Session, Reason: core.SandboxLost, Detail: lossOf(c.record)}
	if core.State(c.record.State) == core.Running {
		outcome.State = core.Failed
	}
	if err := end(c, &outcome, nil, 0); err != nil {
		return err
	}
	c.o.logBuried(c.record, outcome, from, cause)
	return errBuried
}

// inherit compares the record of an execution that this server has just taken over with what
// its sandbox says, and returns where the execution stands. An error means that the answer that
// the record of a paused execution keeps cannot be read.
func inherit(c *conversation, h sandbox.Hello) (core.Standing, error) {
	r, at := c.record, core.StandsRunning
	c.rests = h.Round
	var err error
	switch {
	case core.State(r.State) == core.Paused:
		at = core.StandsPaused
		var answer core.Outcome
		answer, err = core.LastAnswer(r)
		c.segment = answered(r.Round-1, r.Request, answer, err)
	case h.State == sandbox.Ready && r.Round == 0, h.State == sandbox.Paused && h.Round == restsOf(r):
		// The start was recorded and the program never arrived, or the round was claimed and
		// the results never arrived.
		at = core.StandsUndelivered
	default:
		// The program runs, or has come to rest since; the supervisor repeats what it said.
		c.segment = newSegment(r.Round, r.Request, 0)
		if h.State == sandbox.Paused {
			c.rests--
		}
	}
	return at, errors.Join(err, c.stand(at))
}

// continued returns the chronicle of an execution that another server has begun.
func (m *common) continued(ctx context.Context, r continuation.Record) (*chronicle, error) {
	s := journal.Summary{
		ID: r.ID, Session: r.Session, Principal: r.Principal, Created: journal.Moment(r.Created),
		RoundLimit: m.o.MaxRounds, Budget: r.Budget.Milliseconds(), Tools: r.Tools,
	}
	if r.Journal != "" {
		stored, err := m.o.Store.Summary(ctx, r.ID)
		if err == nil {
			err = json.Unmarshal(stored.Content, &s)
		}
		// If the store has no summary, the execution goes on with what its record has.
		if err != nil && !errors.Is(err, continuation.ErrNotFound) {
			return nil, err
		}
	}
	s.Server = journal.ServerName(m.members.Instance())
	w, err := journal.Continue(m.o.Journal, r, s)
	return &chronicle{Writer: w, id: r.ID, words: m.o.Words}, err
}

// errBuried means that takeOver found no sandbox and recorded the end of the execution. The
// caller finds the answer in the record when it tries again.
var errBuried = fmt.Errorf("%w, with its sandbox", ErrOwnerAway)
