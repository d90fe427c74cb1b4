package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"fermata/continuation"
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
	stdout, stderr tail
}

// A claim is the latest claim that a chronicle has noted.
type claim struct {
	request string
	notes   journal.Notes
	// stored is true if the store has it, although the write was reported as failed.
	stored bool
}

// newChronicle returns the chronicle of a new execution, with its first event.
func (m *common) newChronicle(s Start, r continuation.Record, d *mandate) *chronicle {
	language := cmp.Or(string(s.Mode), "python")
	contract := cmp.Or(s.Contract, Exec)
	lines := bytes.Count(s.Code, []byte(`\n`)) + 1 // The code is JSON.
	w := journal.NewWriter(m.o.Journal, journal.Summary{
		ID: r.ID, Session: r.Session, Principal: r.Principal, Status: journal.StatusRunning,
		Contract: contract, Language: language, Title: s.Title, Labels: s.Labels, Parent: s.Parent,
		Created: journal.Moment(r.Created), RoundLimit: m.o.MaxRounds, Budget: r.Budget.Milliseconds(), Tools: d.names(r.Tools),
		Server: journal.ServerName(m.members.instance),
	}, lines)
	started := &journal.Started{
		Execution: r.ID, Session: r.Session, Language: language, Contract: contract, Code: w.Code(s.Code), Tools: r.Tools, Toolsets: d.toolsets(),
		Timeout: r.Budget.Milliseconds(), Title: s.Title, Labels: s.Labels, Parent: s.Parent,
	}
	if len(s.SentOutputs) > 0 {
		started.Outputs = w.Code(s.SentOutputs)
	}
	if len(s.SentTimeline) > 0 {
		started.Timeline = w.Code(s.SentTimeline)
	}
	w.Note(started)
	return &chronicle{Writer: w, id: r.ID, words: m.o.Words}
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
		// Without its summary, the execution goes on with what its record tells.
		if err != nil && !errors.Is(err, continuation.ErrNotFound) {
			return nil, err
		}
	}
	s.Server = journal.ServerName(m.members.instance)
	w, err := journal.Continue(m.o.Journal, r, s)
	return &chronicle{Writer: w, id: r.ID, words: m.o.Words}, err
}

// noteOutput notes what the program has printed, and reports whether that was news.
func (c *chronicle) noteOutput(o sandbox.Output) bool {
	stream, end := journal.Stdout, &c.stdout
	if o.Stderr {
		stream, end = journal.Stderr, &c.stderr
	}
	end.add(o.Offset, o.Data)
	return c.Print(stream, o.Offset, o.Data)
}

// partial returns what a pause tells of what the program has printed so far.
func (c *chronicle) partial() partial { return partial{c.stdout.String(), c.stderr.String()} }

// notePause notes new calls, and the pause that they lead to.
func (c *chronicle) notePause(e ending, round int, expires time.Time) {
	// One after the other, since the values of the first calls may leave no room for those of others.
	for _, call := range e.issued {
		var begun journal.Event = c.begun(call)
		if call.Approval != "" {
			begun = &journal.ApprovalRequested{CallStarted: *c.begun(call)}
		}
		c.Note(begun)
	}
	waiting := make([]string, len(e.calls))
	for i, call := range e.calls {
		waiting[i] = call.ID
	}
	c.Note(&journal.Paused{Round: round, Waiting: waiting, Expires: journal.Moment(expires)})
}

// noteClaim notes what a request brings that continues the execution, whose record is r.
func (c *chronicle) noteClaim(r continuation.Record, request string, brought settlement) {
	if c.claim.stored && c.claim.request == request {
		return
	}
	started := make(map[string]time.Time, len(r.Pending))
	for _, call := range r.Pending {
		started[call.ID] = call.Started
	}
	notes := c.Note(&journal.Resumed{Round: r.Round, Waited: journal.Since(r.Since)})
	for _, result := range brought.plain {
		notes = append(notes, c.noteOutcome(result, started[result.CallID])...)
	}
	if len(brought.decisions) > 0 {
		if asked, err := lastAnswer(r); err == nil {
			brought.ask(asked)
		}
	}
	notes = append(notes, c.noteDecisions(brought.decisions, r.Principal)...)
	c.claim = claim{request: request, notes: notes}
}

// retractClaim takes the latest claim back, which has failed.
func (c *chronicle) retractClaim() { c.Retract(c.claim.notes) }

// found tells the chronicle of a record of this server in the store, whose write may have been
// reported as failed.
func (c *chronicle) found(r continuation.Record) error {
	if State(r.State) == Running && r.Request == c.claim.request {
		// The journal has this claim. The client, who was told that it failed, may make it again.
		c.claim.stored = true
		c.retractClaim()
	}
	return c.Stored(r, false)
}

// failure returns the event of a call that has no result.
func (c *chronicle) failure(call, why string, took int64) journal.Event {
	return c.failureTold(call, why, nil, took)
}

// failureTold returns the event of a call that has no result. details, if there are any, are those of an
// envelope.
func (c *chronicle) failureTold(call, why string, details *envelope.Details, took int64) journal.Event {
	return callFailed(c.Writer, call, journal.RecordName(c.id, call), why, details, took)
}

// callFailed returns the event, for a journal, of a call that has no result.
func callFailed(w *journal.Writer, call, record, why string, details *envelope.Details, took int64) journal.Event {
	failed := &journal.CallFailed{Call: call, Record: record, Error: w.Text(why), Took: took}
	if details != nil {
		failed.Envelope, failed.Code, failed.Where = true, w.Text(details.Code), w.Text(details.Where)
	}
	return failed
}

// noteEnd notes how the execution, whose record is r, has ended. output is all that the program has
// printed, nil if that is not known. ran is added to the time that it has run.
func (c *chronicle) noteEnd(r continuation.Record, o Outcome, output *printed, ran time.Duration) {
	text, added := c.wordsOf(o)
	if output == nil {
		output = &printed{} // What the program has printed since the journal was told is lost.
	}
	c.Finish(journal.Stdout, output.stdout, "")
	c.Finish(journal.Stderr, output.stderr, added)
	var events []journal.Event
	if c.words != nil {
		for _, f := range o.Files {
			events = append(events, &journal.FileStored{File: c.words.File(f)})
		}
	}
	for _, call := range r.Pending {
		if (!call.Answered || call.Stage == stageHanded) && call.Stage != stageRefused { // The journal has the failure of what was refused.
			events = append(events, c.failure(call.ID, "the execution has ended: "+reasonOf(o), journal.Since(call.Started)))
		}
	}
	for _, output := range o.Outputs {
		entry, err := json.Marshal(output)
		if err != nil {
			panic(err) // A struct of texts and a number can be encoded.
		}
		events = append(events, &journal.OutputJudged{Output: entry})
	}
	c.Note(events...)
	c.End(&journal.Ended{
		Status: statusOf(o.State), Reason: string(o.Reason), Detail: o.Why(), Error: text, ExitCode: exitCodeOf(o),
		Ran: (r.Spent + ran).Milliseconds(), Rounds: r.Round, Calls: r.Issued,
		Truncated: o.Reason == StdoutFlood || o.Reason == StderrFlood,
	})
}

// told returns what the journal has of the program's output, for an answer about a sandbox that
// could not report it any more: what the store has, as far as it can be read, and what waits.
func (c *chronicle) told(stored continuation.Journals) (stdout, stderr string) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	var text journal.Transcript
	for {
		events, err := stored.Events(ctx, c.id, text.Last(), scanSize)
		if err != nil || len(events) == 0 {
			break
		}
		text.Add(events...)
	}
	text.Add(c.Waiting()...)
	return text.Stdout(), text.Stderr()
}

// wordsOf returns the text that tells why the execution has not completed, and what the server
// adds to the program's stderr.
func (c *chronicle) wordsOf(o Outcome) (text, added string) {
	if c.words == nil || o.State == Completed {
		return "", ""
	}
	return c.words.End(c.Summary().Contract, o)
}

// reasonOf returns a word for the reason of an end.
func reasonOf(o Outcome) string {
	return strings.ReplaceAll(cmp.Or(string(o.Reason), string(o.State)), "_", " ")
}

// statusOf returns the status of an execution in a state, as all views tell it.
func statusOf(s State) string {
	if s == Failed {
		return journal.StatusError
	}
	return string(s)
}

// exitCodeOf returns the exit code of a program that has ended by itself, negative for a signal.
func exitCodeOf(o Outcome) *int {
	code := 0
	switch {
	case o.State == Completed, o.Reason == OutputsMissing:
	case o.Reason == RaisedError:
		code = 1
	case o.Reason == ExitedCode:
		code = o.Code
	default:
		return nil
	}
	return &code
}
