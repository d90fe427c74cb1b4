package engine

import (
	"context"
	"encoding/json"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
)

// end records the end of the execution, and its answer for a retry of the last request. It completes
// the outcome with what the contract of outputs says. output is all that the program has printed, nil if that is not known. ran is added to the time that the
// program has run. The error is ErrOwnerAway if this server has lost the execution.
func end(l *ledger, outcome *core.Outcome, output *core.Printed, ran time.Duration) error {
	l.quiet()
	if l.standing == core.StandsLost {
		return ErrOwnerAway
	}
	report(l, outcome, output)
	answer, err := outcome.Encode()
	if err == nil {
		l.chronicle.noteEnd(l.record, *outcome, output, ran)
		err = l.commit(outcome.State, func(next *continuation.Record) {
			outcome.End(ran, l.o.KeepAnswers, time.Now())(next)
			next.Answer = keptAnswer(l, *next, answer)
		}, event{kind: endedEvent, outcome: *outcome})
	}
	if err != nil {
		l.o.Log.Error("cannot record the end of an execution", "execution", l.id, "err", err)
	}
	return err
}

// keptAnswer returns the answer that the record of an ended execution keeps: none if no client can
// ask for it, or if too much is stored for the principal.
func keptAnswer(l *ledger, r continuation.Record, answer json.RawMessage) json.RawMessage {
	if !core.Repeatable(r) {
		return nil
	}
	if !l.quota.Keep(r.Principal, core.Weight(r)+int64(len(answer)), l.o.KeepAnswers+recordSlack) {
		// A retry is told that the execution is over, as when the answer has expired.
		l.o.Log.Warn("an answer is not kept: too much is stored for its principal", "execution", l.id)
		return nil
	}
	return answer
}

// toldOutput returns the program's output from the journal, for an answer about a sandbox that could not report
// its output any more. It is what can be read from the store, and what waits to be stored.
func toldOutput(l *ledger) (stdout, stderr string) {
	var text journal.Transcript
	_ = l.do(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
		defer cancel()
		for {
			events, err := l.o.Store.Events(ctx, l.id, text.Last(), scanSize)
			if err != nil || len(events) == 0 {
				return err // What cannot be read is missing.
			}
			text.Add(events...)
		}
	})
	text.Add(l.chronicle.Waiting()...)
	return text.Stdout(), text.Stderr()
}
