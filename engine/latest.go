package engine

import (
	"context"
	"errors"

	"fermata/continuation"
	"fermata/engine/core"
)

// ErrNotKept means that there is no record of an execution of the principal, or none that still has
// its answer.
var ErrNotKept = errors.New("engine: nothing is kept of the execution")

// A Latest tells how an execution stands, by its record.
type Latest struct {
	// Outcome is the latest one, whoever has asked for it. Its State is Running while the program runs.
	Outcome core.Outcome
	// Open are the ids of the calls of a pause that wait for the decision of the execution's principal.
	Open []string
	// Events is how many events its journal had by then.
	Events int64
}

// Latest returns how an execution of a principal stands, on whichever server it is. An end is known
// for as long as answers are kept, if the start asked for that or could be repeated, or the program
// has paused.
func (e *Engine) Latest(ctx context.Context, principal, execution string) (Latest, error) {
	record, err := e.o.Store.Get(ctx, execution)
	switch {
	case errors.Is(err, continuation.ErrNotFound) || err == nil && record.Principal != principal:
		return Latest{}, ErrNotKept
	case err != nil:
		return Latest{}, err
	}
	l := Latest{Outcome: core.Outcome{State: core.Running, Session: record.Session}, Events: record.Events}
	if core.State(record.State) != core.Running {
		if len(record.Answer) == 0 {
			return Latest{}, ErrNotKept
		}
		if l.Outcome, err = core.LastAnswer(record); err != nil {
			return Latest{}, err
		}
	}
	for _, call := range record.Pending {
		if core.State(record.State) == core.Paused && core.StateOf(call) == core.CallAsked {
			l.Open = append(l.Open, call.ID)
		}
	}
	l.Outcome.Execution = record.ID
	return l, nil
}
