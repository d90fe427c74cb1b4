package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/sandbox"
)

// A conversation is the exchange between an execution and its clients. Each request that is
// accepted begins a segment, and gets the answer of that segment. It belongs to the goroutine of the execution.
type conversation struct {
	*ledger
	switches
	// brought is what the latest request brings to the program: the results of a
	// claim, or what a former server did not deliver. It is nil once the program has it.
	brought *delivery
	// segment is the latest segment, which answers the request whose hash is in the record. It is
	// nil while the execution is undelivered.
	segment *segment
	// rests is how often the program has come to rest at its calls.
	rests int
}

func newConversation(l *ledger) *conversation {
	return &conversation{ledger: l, switches: newSwitches()}
}

// restsOf returns how often a program had come to rest when its latest pause began. Servers that ran no
// calls did not record it: it was the round.
func restsOf(r continuation.Record) int { return max(r.Rests, r.Round) }

// open lets a new execution run. One whose start may be repeated, or that may be asked for, is recorded
// first; ErrConflict means that there is a record of it already.
func open(l *ledger, s Start) error {
	if s.Key != "" || s.Keep {
		if err := l.own(asItIs); err != nil {
			return err
		}
	}
	return l.stand(core.StandsRunning)
}

// restart returns the segment that answers a repeated start. If the server before this one died
// before the sandbox had the program, restart delivers it: first redeliver writes the input
// files again. Without a program the error is errNoProgram then.
func (c *conversation) restart(s Start, program *sandbox.Program, redeliver func(context.Context, continuation.Record) error) (*segment, error) {
	switch {
	case c.standing == core.StandsLost:
		return nil, ErrOwnerAway
	case c.record.Start != s.Request:
		return nil, ErrKeyReused
	case c.record.Request != c.record.Start:
		return nil, ErrKeySpent
	case c.standing != core.StandsUndelivered && c.segment == nil:
		return nil, core.OverOf(c.record) // It ended before any program of its start ran here.
	case c.standing != core.StandsUndelivered:
		return c.attend()
	case program == nil:
		return nil, errNoProgram
	}
	ctx, cancel := context.WithTimeout(context.Background(), attachTimeout)
	defer cancel()
	record := c.record
	if err := c.do(func() error { return redeliver(ctx, record) }); err != nil {
		return nil, err
	}
	if err := c.stand(core.StandsRunning); err != nil {
		return nil, err
	}
	return c.begin(newSegment(0, s.Request, 0), delivery{program: program}), nil
}

// errNoProgram means that a repeated start has to bring its program.
var errNoProgram = errors.New("engine: the sandbox has no program yet")

// resume claims the round for a request and returns the segment that answers it. A request that
// is identical to an earlier one gets the segment of the earlier one. expired is the error of a
// token that has expired: such a token still gets an answer, but it cannot claim.
func (c *conversation) resume(claims continuation.Claims, r Resume, expired error) (*segment, error) {
	switch {
	case c.record.Session != claims.Session:
		return nil, continuation.ErrToken
	case c.standing == core.StandsLost:
		return nil, ErrOwnerAway
	case c.segment.answers(claims, r):
		if r.Joined != nil {
			r.Joined(c.id)
		}
		return c.attend()
	case len(r.Results) == 0:
		return nil, ErrNoResults
	}
	switch state := core.State(c.record.State); {
	case state.Terminal():
		return nil, core.OverOf(c.record)
	case claims.Round != c.record.Round:
		return nil, continuation.ErrToken
	case state == core.Running && (c.standing != core.StandsUndelivered || r.Request != c.record.Request):
		return nil, ErrInFlight
	case expired != nil:
		return nil, &core.ExpiredError{Reason: string(core.Expired), Detail: core.RanOut(c.record)}
	}
	if c.isCancelled() {
		return nil, core.Aborted()
	}
	brought, err := core.SettlementOf(c.record.Pending, r.Results)
	if err != nil {
		return nil, err
	}
	events := c.record.Events
	next := newSegment(claims.Round, r.Request, 0)
	if c.standing == core.StandsUndelivered {
		err = c.stand(core.StandsRunning) // The round is claimed already.
	} else {
		next.waited = time.Since(c.record.Since)
		err = c.claim(r, brought)
	}
	if err != nil {
		return nil, err
	}
	if r.Began != nil {
		r.Began(c.id, events)
	}
	return c.begin(next, delivery{results: brought.Results, handed: brought.Handed}), nil
}

// attend returns the latest segment to a request that is identical to the one that began it.
func (c *conversation) attend() (*segment, error) {
	if err := c.save(); err != nil {
		return nil, err
	}
	c.segment.audience.enter()
	return c.segment, nil
}

// claim moves the execution from paused to running. The store accepts the claim of one server
// only. The record keeps the calls, in case this server dies before the results reach the
// program. Calls without a result are issued again, under the same ids.
func (c *conversation) claim(r Resume, brought core.Settlement) error {
	received := c.record.Received
	for _, result := range r.Results {
		received += int64(len(result.Value) + len(result.Message))
	}
	if limit := c.o.MaxResults; limit > 0 && received > limit {
		return &core.ResultsError{Size: received, Limit: limit}
	}
	change, err := brought.Claim(c.record, r.Request, received, time.Now())
	if err != nil {
		return err
	}
	c.chronicle.noteClaim(c.record, r.Request, brought)
	err = c.commit(core.Running, change)
	if err != nil {
		c.chronicle.Retract(c.chronicle.claim.notes)
	}
	return err
}

// begin begins the segment of a request and delivers what the request has brought.
func (c *conversation) begin(s *segment, d delivery) *segment {
	s.audience.enter()
	c.segment, c.brought = s, &d
	return s
}

// take returns what a request has brought to the program since take was called last, if there is something.
func (c *conversation) take() (delivery, bool) {
	d := c.brought
	if c.brought = nil; d == nil {
		return delivery{}, false
	}
	return *d, true
}

// settle records how the latest segment came to rest, and answers its request. It reports
// whether the execution goes on, paused.
func (c *conversation) settle(e core.Ending) bool {
	s := c.segment
	if e.State != core.Paused {
		outcome := e.Outcome(c.record.Session)
		outcome.Ran, outcome.Include = c.record.Spent+e.Ran, c.record.Include
		if e.Printed == nil {
			outcome.Stdout, outcome.Stderr = toldOutput(c.ledger)
		}
		err := end(c.ledger, &outcome, e.Printed, e.Ran)
		// The program has ended, also if the store is away and records it later. A store that is full may never do so,
		// and the client is told. If the store has room again, a retry gets the answer.
		if !errors.Is(err, ErrOwnerAway) && !errors.Is(err, continuation.ErrFull) {
			err = nil
		}
		c.answer(s, outcome, err)
		return false
	}
	outcome, err := c.pause(e)
	c.answer(s, outcome, err)
	// An execution whose pause is not recorded goes on if its client can ask for the pause
	// again: with the token of the round before it, or with the key of the start.
	if c.standing == core.StandsPausedUnsaved && s.round == 0 && c.record.Start == "" {
		// end has logged the error.
		_ = end(c.ledger, &core.Outcome{State: core.Cancelled, Session: c.record.Session}, nil, 0)
	}
	return err == nil || c.standing == core.StandsPausedUnsaved
}

// answer gives a segment its answer.
func (c *conversation) answer(s *segment, outcome core.Outcome, err error) {
	outcome.Step = core.StepOf(c.record)
	outcome.Step.Waited = s.waited
	unheard := s.audience.empty()
	s.finish(outcome, err)
	if unheard && c.standing != core.StandsLost {
		c.o.logUnheard(c.record, outcome)
	}
}

// pause records a pause and returns the answer with its calls and its token.
func (c *conversation) pause(e core.Ending) (core.Outcome, error) {
	outcome := core.Outcome{
		State: core.Paused, Session: c.record.Session, Calls: e.Calls, RoundsLeft: new(c.o.MaxRounds - c.record.Round - 1),
		Stdout: e.Partial.Stdout, Stderr: e.Partial.Stderr,
	}
	deadline := time.Now().Add(pauseLifetime(c.o, c.record, e.Calls))
	var err error
	outcome.Token, err = c.o.Signer.Sign(continuation.Claims{
		Execution: c.record.ID, Session: c.record.Session, Principal: c.record.Principal,
		Round: c.record.Round + 1, Expires: deadline,
	})
	if err != nil {
		return core.Outcome{}, fmt.Errorf("sign token: %w", err)
	}
	answer, err := outcome.Encode()
	if err != nil {
		return core.Outcome{}, err
	}
	c.chronicle.notePause(c.record, e, deadline)
	err = c.commit(core.Paused, e.Pause(c.rests, answer, deadline), event{kind: pausedEvent})
	return outcome, err
}

// pauseLifetime returns how long a pause with these calls may last that begins now.
func pauseLifetime(o *Options, r continuation.Record, calls []core.Call) time.Duration {
	most := o.PauseTTL
	if o.ApprovalTTL > 0 && slices.ContainsFunc(calls, func(call core.Call) bool { return call.Approval != "" }) {
		most = o.ApprovalTTL
	}
	if !o.WallClock {
		return most
	}
	return min(most, max(0, r.Budget-time.Since(r.Created)))
}

// leave ends the execution in its pause; why tells what for.
func (c *conversation) leave(to core.State, why string) {
	c.quiet()
	switch c.standing {
	case core.StandsPaused, core.StandsPausedUnsaved:
	case core.StandsUndelivered:
		to = core.Cancelled
	default:
		return
	}
	if why == core.PauseCancelled && c.stopping.Load() {
		why = core.PauseStopped
	}
	since, outcome := c.record.Since, core.LeftAs(to, why, c.record, lossOf(c.record))
	// end has logged the error. An execution that is lost is another server's to end.
	if err := end(c.ledger, &outcome, nil, 0); !errors.Is(err, ErrOwnerAway) {
		c.o.logPauseEnd(c.record, why, since, outcome)
	}
}

// save writes the record of a pause or an end, if the store did not accept it before. From then
// on the segment has its answer and no error.
func (c *conversation) save() error {
	if c.quiet(); !c.standing.Unsaved() {
		return nil
	}
	if err := c.rewrite(); err != nil {
		return err
	}
	if s := c.segment; s != nil {
		c.segment = answered(s.round, s.request, s.outcome, nil)
	}
	return nil
}
