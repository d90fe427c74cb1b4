package engine

import (
	"encoding/json"
	"slices"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
	"fermata/engine/sandbox"
	"fermata/engine/tools/envelope"
)

// The contracts under which executions are started.
const (
	// Programmatic is a program that may call tools.
	Programmatic = "programmatic"
	// MCP is a program of an agent that speaks the Model Context Protocol.
	MCP = "mcp"
	// Exec is a program without tools.
	Exec = "exec"
)

// A chronicle puts into the journal of one execution what happens to it.
type chronicle struct {
	*journal.Writer
	id    string
	words Words
	claim claim
	// stdout and stderr are the ends of what the program has printed, for the answers to its pauses.
	// Only the execution's goroutine uses them.
	stdout, stderr core.Tail
}

// A claim is the latest claim that a chronicle has noted.
type claim struct {
	request string
	notes   journal.Notes
	// stored is true if the store has the claim, although the write was reported as failed.
	stored bool
}

// noteOutput notes what the program has printed, and reports whether some of it is new.
func (c *chronicle) noteOutput(o sandbox.Output) bool {
	stream, end := journal.Stdout, &c.stdout
	if o.Stderr {
		stream, end = journal.Stderr, &c.stderr
	}
	end.Add(o.Offset, o.Data)
	return c.Print(stream, o.Offset, o.Data)
}

// partial returns the output so far, as the answer to a pause has it.
func (c *chronicle) partial() core.Partial {
	return core.Partial{Stdout: c.stdout.String(), Stderr: c.stderr.String()}
}

// textGivenUp is the error of a call whose result the program does not want any more: its task was
// cancelled, for example.
const textGivenUp = "the program does not wait for this call any more"

// notePause notes new calls, and the pause that they lead to. r is the record of the execution before it.
// Calls of an earlier pause that have no result, and for which the program does not wait any more, end.
func (c *chronicle) notePause(r continuation.Record, e core.Ending, expires time.Time) {
	for _, call := range r.Pending {
		waits := slices.ContainsFunc(e.Pending, func(p continuation.Call) bool { return p.ID == call.ID })
		if core.StateOf(call).Open() && !waits {
			c.Note(c.failure(call.ID, textGivenUp, journal.Since(call.Started)))
		}
	}
	// The calls are noted one after the other, since the values of the first ones may leave no room for
	// those of others.
	for _, call := range e.Issued {
		var begun journal.Event = c.begun(call)
		if call.Approval != "" {
			begun = &journal.ApprovalRequested{CallStarted: *c.begun(call)}
		}
		c.Note(begun)
	}
	waiting := make([]string, len(e.Calls))
	for i, call := range e.Calls {
		waiting[i] = call.ID
	}
	c.Note(&journal.Paused{Round: r.Round + 1, Waiting: waiting, Expires: journal.Moment(expires)})
}

// noteClaim notes a continuation and the results that it brings. r is the record of the execution.
func (c *chronicle) noteClaim(r continuation.Record, request string, brought core.Settlement) {
	if c.claim.stored && c.claim.request == request {
		return
	}
	started := make(map[string]time.Time, len(r.Pending))
	for _, call := range r.Pending {
		started[call.ID] = call.Started
	}
	notes := c.Note(&journal.Resumed{Round: r.Round, Waited: journal.Since(r.Since)})
	for _, result := range brought.Plain {
		notes = append(notes, c.noteOutcome(result, started[result.CallID])...)
	}
	if len(brought.Decisions) > 0 {
		if asked, err := core.LastAnswer(r); err == nil {
			brought.Ask(asked)
		}
	}
	notes = append(notes, c.noteDecisions(brought.Decisions, r.Principal)...)
	c.claim = claim{request: request, notes: notes}
}

// found tells the chronicle that the store has record r, which this server has written. The write may have
// been reported as failed.
func (c *chronicle) found(r continuation.Record) error {
	if core.State(r.State) == core.Running && r.Request == c.claim.request {
		// The journal has the claim. The client was told that it failed, and may make it again.
		c.claim.stored = true
		c.Retract(c.claim.notes)
	}
	return c.Stored(r, false)
}

// recordName returns the name of the record of a call.
func (c *chronicle) recordName(call string) string { return c.Summary().RecordNameOf(call) }

// failure returns the event of a call that has failed without an envelope.
func (c *chronicle) failure(call, why string, took int64) journal.Event {
	return c.failureTold(call, why, nil, took)
}

// failureTold returns the event of a call that has failed with the details of an envelope, or with none.
func (c *chronicle) failureTold(call, why string, details *envelope.Details, took int64) journal.Event {
	return callFailed(c.Writer, call, c.recordName(call), why, details, took)
}

// callFailed returns the event of a call that has failed, for the journal of w.
func callFailed(w *journal.Writer, call, record, why string, details *envelope.Details, took int64) journal.Event {
	failed := &journal.CallFailed{Call: call, Record: record, Error: w.Text(why), Took: took}
	if details != nil {
		failed.Envelope, failed.Code, failed.Where = true, w.Text(details.Code), w.Text(details.Where)
	}
	return failed
}

// noteEnd notes how the execution has ended. r is its record. output is everything that the program has
// printed, or nil if that is not known. ran is added to the time that the program has run.
func (c *chronicle) noteEnd(r continuation.Record, o core.Outcome, output *core.Printed, ran time.Duration) {
	text, added := c.wordsOf(o)
	if output == nil {
		output = &core.Printed{} // What the program has printed since the last event of the journal is lost.
	}
	c.Finish(journal.Stdout, output.Stdout, "")
	c.Finish(journal.Stderr, output.Stderr, added)
	var events []journal.Event
	if c.words != nil {
		for _, f := range o.Files {
			events = append(events, &journal.FileStored{File: c.words.File(f)})
		}
	}
	for _, call := range r.Pending {
		// The journal has the failure of a refused call already.
		if state := core.StateOf(call); (state.Open() || state == core.CallHanded) && !state.Refused() {
			events = append(events, c.failure(call.ID, "the execution has ended: "+core.ReasonOf(o), journal.Since(call.Started)))
		}
	}
	for _, output := range o.Outputs {
		entry, err := json.Marshal(output)
		if err != nil {
			panic(err) // It does not happen: a struct of texts and a number can be encoded.
		}
		events = append(events, &journal.OutputJudged{Output: entry})
	}
	c.Note(events...)
	c.End(&journal.Ended{
		Status: core.StatusOf(o.State), Reason: string(o.Reason), Detail: o.Why(), Error: text, Raised: core.RaisedOf(o, text), ExitCode: core.ExitCodeOf(o),
		Ran: (r.Spent + ran).Milliseconds(), Rounds: r.Round, Calls: r.Issued,
		Truncated: o.Reason == core.StdoutFlood || o.Reason == core.StderrFlood,
	})
}

// wordsOf returns the text that says why the execution has not completed, and the text that the server adds
// to the program's stderr.
func (c *chronicle) wordsOf(o core.Outcome) (text, added string) {
	if c.words == nil || o.State == core.Completed {
		return "", ""
	}
	return c.words.End(c.Summary().Contract, o)
}

// noteOutcome notes what a client's result tells, unless files have to be kept first.
func (c *chronicle) noteOutcome(a core.Reply, started time.Time) journal.Notes {
	if len(a.Files) > 0 {
		return nil
	}
	return c.Note(c.outcomeOf(a, started))
}

// outcomeOf returns the event of a client's result.
func (c *chronicle) outcomeOf(a core.Reply, started time.Time) journal.Event {
	took := journal.Since(started)
	if a.Failed {
		return c.failureTold(a.CallID, core.MessageOf(a.Result), a.Details, took)
	}
	return &journal.CallCompleted{Call: a.CallID, Record: c.recordName(a.CallID), Output: c.Value(a.Value), Took: took}
}

// scanSize is how many bytes of events are read at once.
const scanSize = 1 << 20

// begun returns the event with which a call begins.
func (c *chronicle) begun(call core.IssuedCall) *journal.CallStarted {
	runner := journal.RunnerClient
	if call.Server {
		runner = journal.RunnerServer
	}
	return &journal.CallStarted{
		Call: call.ID, Record: c.recordName(call.ID), Tool: call.Name, Toolset: call.Toolset, Runner: runner,
		Input: c.Value(call.Input), Line: c.Line(call.Line),
	}
}

// noteDecisions notes what a principal has decided in the journal.
func (c *chronicle) noteDecisions(decisions []core.Decision, by string) (notes journal.Notes) {
	for _, d := range decisions {
		notes = append(notes, c.Note(&journal.ApprovalDecided{Call: d.Call.ID, By: by, Reason: c.Text(d.Reason), Given: d.Approve})...)
		switch {
		case !d.Approve:
			notes = append(notes, c.Note(c.failure(d.Call.ID, core.RefusedText(d.Reason), 0))...)
		case d.Answer != nil:
			// The client has run the call and approved it with the same request.
			notes = append(notes, c.Note(c.begun(core.IssuedCall{Call: core.Call{ID: d.Call.ID, Name: d.Call.Tool, Toolset: d.Call.Toolset, Input: d.Input}}))...)
			notes = append(notes, c.noteOutcome(*d.Answer, d.Call.Started)...)
		}
	}
	return notes
}
