package core

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"fermata/continuation"
)

// ErrExpired means that the execution has ended, or that its record is gone.
var ErrExpired = errors.New("engine: execution is over")

// An ExpiredError refuses a request for an execution that is over, and tells how it has ended. It is
// an ErrExpired.
type ExpiredError struct {
	// Reason is OverFinished, a State or a Reason.
	Reason string
	// Detail says more, in words for the client.
	Detail string
}

// OverFinished is the reason of an ExpiredError about a program that has come to its end, well or not.
const OverFinished = "finished"

func (e *ExpiredError) Error() string { return "engine: execution is over: " + e.Reason }

// Unwrap returns ErrExpired.
func (e *ExpiredError) Unwrap() error { return ErrExpired }

// ErrForgotten is about an execution of which nobody knows anything any more.
var ErrForgotten = &ExpiredError{string(Expired), "Nothing is known of this execution any more: it has ended, or its record is lost"}

// OverOf tells how the execution of a record has ended.
func OverOf(r continuation.Record) *ExpiredError {
	switch state := State(r.State); {
	case state == Completed:
		return &ExpiredError{OverFinished, "The program has completed"}
	case state == Failed && Reason(r.Reason) != SandboxLost:
		return &ExpiredError{OverFinished, "The program has ended with an error"}
	default:
		return &ExpiredError{cmp.Or(r.Reason, r.State), cmp.Or(r.Detail, overDetails[state])}
	}
}

// overDetails say how executions have ended whose records do not say more.
var overDetails = map[State]string{
	Failed:    SandboxEnded,
	TimedOut:  "The program has used up its run budget",
	Cancelled: "The execution was cancelled",
	Expired:   "The pause ran out",
}

// Aborted returns the error about an execution that is being cancelled.
func Aborted() *ExpiredError { return &ExpiredError{string(Cancelled), overDetails[Cancelled]} }

// SandboxEnded tells that nothing more is known of why a sandbox has gone.
const SandboxEnded = "The sandbox ended, and the program was not the cause"

// LeftAs returns the outcome of an execution, whose record is r, that ends in its pause. loss tells why its sandbox is
// gone, if that is why.
func LeftAs(to State, why string, r continuation.Record, loss string) Outcome {
	o := Outcome{State: to, Session: r.Session}
	switch why {
	case PauseRanOut:
		o.Detail = RanOut(r)
	case PauseLost, PauseUnclaimed:
		o.Reason, o.Detail = SandboxLost, loss
	case PauseStopped:
		o.Detail = "The server was stopped (FERMATA_DRAIN=end)"
	case PauseSpent:
		o.Detail = fmt.Sprintf("The program has used up its run budget of %s, since a part of it ran during the pause", inSeconds(r.Budget))
	}
	return o
}

// RanOut tells that the pause of a record has run out.
func RanOut(r continuation.Record) string {
	if r.Since.IsZero() {
		return overDetails[Expired]
	}
	return "The pause ran out after " + inSeconds(r.Deadline.Sub(r.Since))
}

// inSeconds spells a time for clients.
func inSeconds(d time.Duration) string {
	return strconv.FormatFloat(d.Round(100*time.Millisecond).Seconds(), 'g', -1, 64) + " s"
}

// What ends an execution in its pause, in the words of the log. LeftAs has those for clients.
const (
	PauseRanOut    = "a pause ran out: no continuation came in time"
	PauseLost      = "a paused program lost its sandbox"
	PauseSpent     = "a program used up its run budget although it was paused"
	PauseCancelled = "a paused execution was cancelled"
	PauseStopped   = "a paused execution was ended because the server stops"
	PauseUnclaimed = "an execution whose server had died was ended: it could not go on where it stood"
)

// LastAnswer returns the answer that a record keeps.
func LastAnswer(record continuation.Record) (Outcome, error) {
	outcome := Outcome{Step: StepOf(record)}
	outcome.Step.Repeated = true
	if len(record.Answer) == 0 {
		return outcome, OverOf(record) // See kept.
	}
	if err := json.Unmarshal(record.Answer, &outcome); err != nil {
		return Outcome{}, fmt.Errorf("read kept answer of execution %s: %w", record.ID, err)
	}
	return outcome, nil
}
