package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/sandbox"
)

// A conversation is the exchange between an execution and its clients. Each request that is
// accepted begins a segment, and gets the answer of that segment.
type conversation struct {
	*ledger
	// deliveries takes what a request brings to the goroutine of the execution: the results of a
	// claim, or what a former server did not deliver.
	deliveries chan delivery
	// cancel cancels the execution, for a client or for Close: it closes cancelled. After that no
	// claim is accepted.
	cancelled chan struct{}
	cancel    func()
	// stopping is true if the server's end is what cancels the execution.
	stopping atomic.Bool
	// segment is the latest segment, which answers the request whose hash is in the record. It is
	// nil while the execution is undelivered. ledger.mu guards it.
	segment *segment
	// rests is how often the program has come to rest at its calls. ledger.mu guards it.
	rests int
}

// rest notes that the program has come to rest at its calls.
func (c *conversation) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rests++
}

// restsOf returns how often a program had come to rest when its latest pause began. Servers that ran no
// calls did not record it: it was the round.
func restsOf(r continuation.Record) int { return max(r.Rests, r.Round) }

func newConversation(l *ledger) *conversation {
	cancelled := make(chan struct{})
	return &conversation{
		ledger:     l,
		deliveries: make(chan delivery, 1),
		cancelled:  cancelled,
		cancel:     sync.OnceFunc(func() { close(cancelled) }),
	}
}

// abortTimeout bounds how long the end of a paused execution that is cancelled may take. It takes
// one write to the store.
const abortTimeout = time.Second

// abort cancels the execution for a client. CancelDone means that it was paused, and has ended.
func (c *conversation) abort(ctx context.Context) Cancelling {
	was := *c.state.Load()
	if was.Terminal() {
		return CancelCompleted
	}
	c.cancel()
	if was != core.Paused {
		return CancelRequested
	}
	ctx, stop := context.WithTimeout(ctx, abortTimeout)
	defer stop()
	select {
	case <-c.over:
	case <-c.left:
	case <-ctx.Done():
	}
	switch is := *c.state.Load(); {
	case is == core.Cancelled:
		return CancelDone
	case is.Terminal():
		return CancelCompleted
	}
	return CancelRequested
}

// open lets a new execution run. One whose start may be repeated, or that may be asked for, is recorded
// first; ErrConflict means that there is a record of it already.
func (c *conversation) open(ctx context.Context, s Start) error {
	if s.Key != "" || s.Keep {
		if err := c.own(ctx, func(*continuation.Record) {}); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stand(core.StandsRunning)
}

// lacksProgram reports whether the sandbox has not been given its program, because the server before this
// one died first. If so, restart delivers the program.
func (c *conversation) lacksProgram() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.standing == core.StandsUndelivered && c.record.Round == 0
}

// restart returns the segment that answers a repeated start. If the server before this one died
// before the sandbox had the program, restart delivers it: first redeliver writes the input
// files again.
func (c *conversation) restart(ctx context.Context, s Start, program *sandbox.Program, redeliver func(context.Context, continuation.Record) error) (*segment, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
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
		return c.attend(ctx)
	}
	if err := redeliver(ctx, c.record); err != nil {
		return nil, err
	}
	if err := c.stand(core.StandsRunning); err != nil {
		return nil, err
	}
	return c.begin(newSegment(0, s.Request, 0), delivery{program: program}), nil
}

// resume claims the round for a request and returns the segment that answers it. A request that
// is identical to an earlier one gets the segment of the earlier one. expired is the error of a
// token that has expired: such a token still gets an answer, but it cannot claim.
func (c *conversation) resume(ctx context.Context, claims continuation.Claims, r Resume, expired error) (*segment, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.record.Session != claims.Session:
		return nil, continuation.ErrToken
	case c.standing == core.StandsLost:
		return nil, ErrOwnerAway
	case c.segment.answers(claims, r):
		if r.Joined != nil {
			r.Joined(c.id)
		}
		return c.attend(ctx)
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
	select {
	case <-c.cancelled:
		return nil, core.Aborted()
	default:
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
		err = c.claim(ctx, r, brought)
	}
	if err != nil {
		return nil, err
	}
	if r.Began != nil {
		r.Began(c.id, events)
	}
	return c.begin(next, delivery{results: brought.Results, handed: brought.Handed}), nil
}

// attend returns the latest segment to a request that is identical to the one that began it. mu is
// held.
func (c *conversation) attend(ctx context.Context) (*segment, error) {
	if err := c.save(ctx); err != nil {
		return nil, err
	}
	c.segment.audience.enter()
	return c.segment, nil
}

// claim moves the execution from paused to running. The store accepts the claim of one server
// only. The record keeps the calls, in case this server dies before the results reach the
// program. Calls without a result are issued again, under the same ids. mu is held.
func (c *conversation) claim(ctx context.Context, r Resume, brought core.Settlement) error {
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
	err = c.commit(ctx, core.Running, change)
	if err != nil {
		c.chronicle.retractClaim()
	}
	return err
}

// begin begins the segment of a request and delivers what the request has brought. mu is held.
func (c *conversation) begin(s *segment, d delivery) *segment {
	s.audience.enter()
	c.segment = s
	c.deliveries <- d
	return s
}

// settle records how the latest segment came to rest, and answers its request. It reports
// whether the execution goes on, paused.
func (c *conversation) settle(e core.Ending) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.segment
	if e.State != core.Paused {
		outcome := e.Outcome(c.record.Session)
		outcome.Ran, outcome.Include = c.record.Spent+e.Ran, c.record.Include
		if e.Printed == nil {
			outcome.Stdout, outcome.Stderr = c.chronicle.told(c.o.Store)
		}
		err := c.end(&outcome, e.Printed, e.Ran)
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
		_ = c.end(&core.Outcome{State: core.Cancelled, Session: c.record.Session}, nil, 0)
	}
	return err == nil || c.standing == core.StandsPausedUnsaved
}

// answer gives a segment its answer. mu is held.
func (c *conversation) answer(s *segment, outcome core.Outcome, err error) {
	outcome.Step = core.StepOf(c.record)
	outcome.Step.Waited = s.waited
	unheard := s.audience.empty()
	s.finish(outcome, err)
	if unheard && c.standing != core.StandsLost {
		c.o.logUnheard(c.record, outcome)
	}
}

// pause records a pause and returns the answer with its calls and its token. mu is held.
func (c *conversation) pause(e core.Ending) (core.Outcome, error) {
	outcome := core.Outcome{
		State: core.Paused, Session: c.record.Session, Calls: e.Calls, RoundsLeft: new(c.o.MaxRounds - c.record.Round - 1),
		Stdout: e.Partial.Stdout, Stderr: e.Partial.Stderr,
	}
	deadline := time.Now().Add(c.pauseLifetime(e.Calls))
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
	err = c.commit(context.Background(), core.Paused, e.Pause(c.rests, answer, deadline), event{kind: pausedEvent})
	return outcome, err
}

// pauseLifetime returns how long a pause with these calls may last that begins now. mu is held.
func (c *conversation) pauseLifetime(calls []core.Call) time.Duration {
	most := c.o.PauseTTL
	if c.o.ApprovalTTL > 0 && slices.ContainsFunc(calls, func(call core.Call) bool { return call.Approval != "" }) {
		most = c.o.ApprovalTTL
	}
	if !c.o.WallClock {
		return most
	}
	return min(most, max(0, c.record.Budget-time.Since(c.record.Created)))
}

// end records the end of the execution, and its answer for a retry of the last request. It completes
// the outcome with what the contract of outputs says. output is all that the program has printed, nil if that is not known. ran is added to the time that the
// program has run. The error is ErrOwnerAway if this server has lost the execution. mu is held.
func (c *conversation) end(outcome *core.Outcome, output *core.Printed, ran time.Duration) error {
	if c.standing == core.StandsLost {
		return ErrOwnerAway
	}
	c.report(outcome, output)
	answer, err := outcome.Encode()
	if err == nil {
		c.chronicle.noteEnd(c.record, *outcome, output, ran)
		err = c.commit(context.Background(), outcome.State, func(next *continuation.Record) {
			outcome.End(ran, c.o.KeepAnswers, time.Now())(next)
			next.Answer = c.kept(*next, answer)
		}, event{kind: endedEvent, outcome: *outcome})
	}
	if err != nil {
		c.o.Log.Error("cannot record the end of an execution", "execution", c.id, "err", err)
	}
	return err
}

// kept returns the answer that the record of an ended execution keeps: none if no client can
// ask for it, or if too much is stored for the principal. mu is held.
func (c *conversation) kept(r continuation.Record, answer json.RawMessage) json.RawMessage {
	if !core.Repeatable(r) {
		return nil
	}
	if !c.quota.Keep(r.Principal, core.Weight(r)+int64(len(answer)), c.o.KeepAnswers+recordSlack) {
		// A retry is told that the execution is over, as when the answer has expired.
		c.o.Log.Warn("an answer is not kept: too much is stored for its principal", "execution", c.id)
		return nil
	}
	return answer
}

// leave ends the execution in its pause; why tells what for. It reports false if a claim came first.
func (c *conversation) leave(to core.State, why string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.standing {
	case core.StandsPaused, core.StandsPausedUnsaved:
	case core.StandsUndelivered:
		to = core.Cancelled
	case core.StandsRunning:
		return false
	default:
		return true
	}
	if why == core.PauseCancelled && c.stopping.Load() {
		why = core.PauseStopped
	}
	since, outcome := c.record.Since, core.LeftAs(to, why, c.record, lossOf(c.record))
	// end has logged the error. An execution that is lost is another server's to end.
	if err := c.end(&outcome, nil, 0); !errors.Is(err, ErrOwnerAway) {
		c.o.logPauseEnd(c.record, why, since, outcome)
	}
	return true
}

// stop cancels the execution because the server stops.
func (c *conversation) stop() {
	c.stopping.Store(true)
	c.cancel()
}

// save writes the record of a pause or an end, if the store did not accept it before. From then
// on the segment has its answer and no error. mu is held.
func (c *conversation) save(ctx context.Context) error {
	if !c.standing.Unsaved() {
		return nil
	}
	if err := c.rewrite(ctx); err != nil {
		return err
	}
	if s := c.segment; s != nil {
		c.segment = answered(s.round, s.request, s.outcome, nil)
	}
	return nil
}

// saveLate writes the record of an end that the store did not accept, as soon as the store is
// back. Until then the conversation answers retries. saveLate gives up when the answer need not
// be kept any longer, or when stop is closed.
func (c *conversation) saveLate(stop <-chan struct{}) {
	retry := time.NewTicker(saveRetry)
	defer retry.Stop()
	until := time.Now().Add(c.o.KeepAnswers)
	for {
		c.mu.Lock()
		late := c.standing == core.StandsEndedUnsaved && c.save(context.Background()) != nil && time.Now().Before(until)
		c.mu.Unlock()
		if !late {
			return
		}
		select {
		case <-retry.C:
		case <-stop:
			return
		}
	}
}
