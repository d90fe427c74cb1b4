package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"fermata/continuation"
)

// open notes that a start begins to run. One that may be repeated is recorded first:
// ErrConflict means that there is such an execution already.
func (l *ledger) open(ctx context.Context, s Start) error {
	if s.Key != "" {
		err := l.own(ctx, func(next *continuation.Record) {
			next.Start = s.Request
			next.Deadline = time.Now().Add(next.Budget)
		})
		if err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stand(running)
}

// restart returns the segment that answers a start which is identical to the one that began
// the execution. redeliver gives the sandbox what belongs to the program again, for a start
// whose server died before the program was handed over.
func (l *ledger) restart(ctx context.Context, s Start, program [][]byte, redeliver func(context.Context, continuation.Record) error) (*segment, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.standing == lost:
		return nil, ErrOwnerAway
	case l.record.Start != s.Request:
		return nil, ErrKeyReused
	case l.record.Request != l.record.Start:
		return nil, ErrKeySpent
	case l.standing != undelivered:
		err := l.save(ctx)
		return l.segment, err
	}
	if err := redeliver(ctx, l.record); err != nil {
		return nil, err
	}
	return l.deliver(0, s.Request, program)
}

// resume claims the round for a request and returns the segment that answers it: a new one,
// or that of the identical request which came first. expired is the verdict on the token's
// age, which only matters if there is something to claim.
func (l *ledger) resume(ctx context.Context, claims continuation.Claims, r Resume, expired error) (*segment, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.record.Session != claims.Session:
		return nil, continuation.ErrToken
	case l.standing == lost:
		return nil, ErrOwnerAway
	case l.repeats(claims, r):
		err := l.save(ctx)
		return l.segment, err
	}
	switch state := State(l.record.State); {
	case state.terminal():
		return nil, ErrExpired
	case claims.Round != l.record.Round:
		return nil, continuation.ErrToken
	case state == Running && (l.standing != undelivered || r.Request != l.record.Request):
		return nil, ErrInFlight
	case expired != nil:
		return nil, expired
	}
	payload, err := encodeResults(l.record.Pending, r.Results)
	if err != nil {
		return nil, err
	}
	if l.standing == undelivered {
		return l.deliver(claims.Round, r.Request, payload)
	}
	if err := l.claim(ctx, r); err != nil {
		return nil, err
	}
	l.segment = newSegment(claims.Round, r.Request)
	l.results <- payload
	return l.segment, nil
}

// repeats reports whether a request is the one that began the latest segment. mu is held.
func (l *ledger) repeats(claims continuation.Claims, r Resume) bool {
	s := l.segment
	return s != nil && s.round == claims.Round && claims.Round > 0 && s.request == r.Request
}

// claim takes the round for a request: of racing servers the store lets one pass. All calls
// stay in the record, in case the results do not reach the program before this server dies;
// those without a result are issued again under their ids. mu is held.
func (l *ledger) claim(ctx context.Context, r Resume) error {
	received := l.record.Received
	answered := make(map[string]bool, len(r.Results))
	for _, result := range r.Results {
		received += int64(len(result.Value) + len(result.Message))
		answered[result.CallID] = true
	}
	if limit := l.o.MaxResults; limit > 0 && received > limit {
		return &ResultsError{Size: received, Limit: limit}
	}
	return l.commit(ctx, Running, func(next *continuation.Record) {
		next.Received = received
		next.Pending = slices.Clone(next.Pending)
		for i, c := range next.Pending {
			next.Pending[i].Answered = answered[c.ID]
		}
		next.Request, next.Answer = r.Request, nil
		next.Deadline = time.Now().Add(next.Budget - next.Spent)
	})
}

// deliver hands over what a former server did not. mu is held.
func (l *ledger) deliver(round int, request string, payload [][]byte) (*segment, error) {
	if err := l.stand(running); err != nil {
		return nil, err
	}
	l.segment = newSegment(round, request)
	l.results <- payload
	return l.segment, nil
}

// settle records how a stretch of running came to rest and answers its request. It reports
// whether the execution goes on, paused.
func (l *ledger) settle(e ending) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.segment
	if e.state != Paused {
		outcome := e.outcome(l.record.Session)
		outcome.Ran = l.record.Spent + e.ran
		err := l.end(e.state, outcome, e.ran)
		if !errors.Is(err, ErrOwnerAway) {
			err = nil // What the store does not know yet has happened all the same.
		}
		s.finish(outcome, err)
		return false
	}
	outcome, err := l.pause(e)
	s.finish(outcome, err)
	// A pause that the store did not take can be asked for again by whoever has a token of
	// the round before it, or the key of the start.
	return err == nil || l.standing == pausedUnsaved && (s.round > 0 || l.record.Start != "")
}

// pause records a pause and returns the answer that announces it. mu is held.
func (l *ledger) pause(e ending) (Outcome, error) {
	outcome := Outcome{State: Paused, Session: l.record.Session, Calls: e.calls}
	deadline := time.Now().Add(l.pauseLifetime())
	var err error
	outcome.Token, err = l.o.Signer.Sign(continuation.Claims{
		Execution: l.record.ID, Session: l.record.Session, Principal: l.record.Principal,
		Round: l.record.Round + 1, Expires: deadline,
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("sign token: %w", err)
	}
	answer, err := outcome.encode()
	if err != nil {
		return Outcome{}, err
	}
	err = l.commit(context.Background(), Paused, func(next *continuation.Record) {
		next.Spent += e.ran
		next.Issued += e.issued
		next.Pending, next.Answer, next.Deadline = e.pending, answer, deadline
	}, event{kind: pausedEvent})
	return outcome, err
}

// pauseLifetime is how long the coming pause may last. mu is held.
func (l *ledger) pauseLifetime() time.Duration {
	if !l.o.WallClock {
		return l.o.PauseTTL
	}
	return min(l.o.PauseTTL, max(0, l.record.Budget-time.Since(l.record.Created)))
}

// end records an end, after ran more of running, with the answer for whoever asks again. The
// error is ErrOwnerAway if another server has the execution. mu is held.
func (l *ledger) end(state State, outcome Outcome, ran time.Duration) error {
	if l.standing == lost {
		return ErrOwnerAway
	}
	answer, err := outcome.encode()
	if err == nil {
		err = l.commit(context.Background(), state, func(next *continuation.Record) {
			next.Spent += ran
			next.Deadline = time.Now().Add(l.o.KeepAnswers)
			next.Pending, next.Tools = nil, nil
			next.Answer = l.kept(*next, answer)
		}, event{kind: endedEvent, outcome: outcome})
	}
	if err != nil {
		l.o.Log.Error("cannot record the end of an execution", "execution", l.id, "err", err)
	}
	return err
}

// kept returns the answer that is kept of an end: none where nobody could ask for it, or
// where too much is kept for its principal. mu is held.
func (l *ledger) kept(r continuation.Record, answer json.RawMessage) json.RawMessage {
	if !l.recorded() {
		return nil
	}
	if !l.quota.keep(r.Principal, weight(r)+int64(len(answer)), l.o.KeepAnswers+recordSlack) {
		// Who asks again is told that it is over, as when the answer has expired.
		l.o.Log.Warn("an answer is not kept: too much is stored for its principal", "execution", l.id)
		return nil
	}
	return answer
}

// leave ends a pause without a continuation. It reports false if a claim came first.
func (l *ledger) leave(to State) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.standing {
	case paused, pausedUnsaved:
	case undelivered:
		to = Cancelled
	case running:
		return false
	default:
		return true
	}
	// An execution that another server has is that server's to end.
	_ = l.end(to, Outcome{State: to, Session: l.record.Session}, 0)
	return true
}

// lastAnswer is the answer that is kept in a record.
func lastAnswer(record continuation.Record) (Outcome, error) {
	var outcome Outcome
	if len(record.Answer) == 0 {
		return outcome, ErrExpired // It was too much to keep.
	}
	if err := json.Unmarshal(record.Answer, &outcome); err != nil {
		return Outcome{}, fmt.Errorf("read kept answer of execution %s: %w", record.ID, err)
	}
	return outcome, nil
}
