package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"fermata/continuation"
	"fermata/engine/journal"
)

// Words put into words for journals what answers tell.
type Words interface {
	// End returns the text that tells why an execution has not completed, and what answers add to
	// the program's stderr. contract is that of the start.
	End(contract string, o Outcome) (text, added string)
	// File returns the entry of a file in answers, as JSON.
	File(f OutputFile) json.RawMessage
}

// The contracts under which executions are started.
const (
	// Programmatic is a program that may call tools.
	Programmatic = "programmatic"
	// Exec is a program without tools.
	Exec = "exec"
)

// newChronicle returns the journal of a new execution, with its first event.
func (m *common) newChronicle(s Start, r continuation.Record) *journal.Writer {
	language := cmp.Or(string(s.Mode), "python")
	contract := cmp.Or(s.Contract, Exec)
	w := journal.NewWriter(m.o.Journal, journal.Summary{
		ID: r.ID, Session: r.Session, Principal: r.Principal, Status: journal.StatusRunning,
		Contract: contract, Language: language, Title: s.Title, Labels: s.Labels, Parent: s.Parent,
		Created: journal.Moment(r.Created), RoundLimit: m.o.MaxRounds, Budget: r.Budget.Milliseconds(), Tools: r.Tools,
	}, bytes.Count(s.Code, []byte(`\n`))+1)
	w.Note(&journal.Started{
		Execution: r.ID, Session: r.Session, Language: language, Contract: contract, Code: w.Code(s.Code), Tools: r.Tools,
		Timeout: r.Budget.Milliseconds(), Title: s.Title, Labels: s.Labels, Parent: s.Parent,
	})
	return w
}

// continued returns the journal of an execution that another server has begun.
func (m *common) continued(ctx context.Context, r continuation.Record) (*journal.Writer, error) {
	s := journal.Summary{
		ID: r.ID, Session: r.Session, Principal: r.Principal, Created: journal.Moment(r.Created),
		RoundLimit: m.o.MaxRounds, Budget: r.Budget.Milliseconds(), Tools: r.Tools,
	}
	if r.Journal != "" {
		stored, err := m.o.Store.Summary(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(stored.Content, &s); err != nil {
			return nil, err
		}
	}
	return journal.Continue(m.o.Journal, r, s)
}

// notePause tells the journal of new calls, and of the pause that they lead to.
func (l *ledger) notePause(e ending, round int, expires time.Time) {
	events := make([]journal.Event, 0, len(e.calls)+1)
	for _, c := range e.issued {
		events = append(events, &journal.CallStarted{
			Call: c.ID, Record: journal.RecordName(l.id, c.ID), Tool: c.Name, Runner: "client",
			Input: l.journal.Value(c.Input), Line: l.journal.Line(c.line),
		})
	}
	waiting := make([]string, len(e.calls))
	for i, c := range e.calls {
		waiting[i] = c.ID
	}
	l.journal.Note(append(events, &journal.Paused{Round: round, Waiting: waiting, Expires: journal.Moment(expires)})...)
}

// noteResults tells the journal of the results with which a request continues the execution.
func (l *ledger) noteResults(results []Result) journal.Notes {
	started := make(map[string]time.Time, len(l.record.Pending))
	for _, c := range l.record.Pending {
		started[c.ID] = c.Started
	}
	events := []journal.Event{&journal.Resumed{Round: l.record.Round, Waited: since(l.record.Since)}}
	for _, r := range results {
		took := since(started[r.CallID])
		if r.Failed {
			events = append(events, &journal.CallFailed{
				Call: r.CallID, Record: journal.RecordName(l.id, r.CallID), Error: l.journal.Text(messageOf(r)), Took: took,
			})
			continue
		}
		events = append(events, &journal.CallCompleted{
			Call: r.CallID, Record: journal.RecordName(l.id, r.CallID), Output: l.journal.Value(r.Value), Took: took,
		})
	}
	return l.journal.Note(events...)
}

// messageOf returns the message of a failed call.
func messageOf(r Result) string {
	var text string
	// The message was found to be a JSON string, or empty, when it came.
	_ = json.Unmarshal(r.Message, &text)
	return cmp.Or(text, "tool execution failed")
}

// since returns the milliseconds since t, 0 if t is not known.
func since(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(0, time.Since(t).Milliseconds())
}

// noteEnd tells the journal how the execution has ended. stdout and stderr are all that the
// program has printed, if the sandbox has reported that.
func (l *ledger) noteEnd(o Outcome, output *printed, ran time.Duration) {
	text, added := l.wordsOf(o)
	if output != nil {
		l.journal.Finish(journal.Stdout, output.stdout, "")
		l.journal.Finish(journal.Stderr, output.stderr, added)
	}
	var events []journal.Event
	if l.o.Words != nil {
		for _, f := range o.Files {
			events = append(events, &journal.FileStored{File: l.o.Words.File(f)})
		}
	}
	for _, c := range l.record.Pending {
		if !c.Answered {
			events = append(events, &journal.CallFailed{
				Call: c.ID, Record: journal.RecordName(l.id, c.ID), Error: l.journal.Text("the execution has ended: " + reasonOf(o)), Took: since(c.Started),
			})
		}
	}
	l.journal.Note(events...)
	l.journal.End(&journal.Ended{
		Status: statusOf(o.State), Reason: string(o.Reason), Error: text, ExitCode: exitCodeOf(o),
		Ran: (l.record.Spent + ran).Milliseconds(), Rounds: l.record.Round, Calls: l.record.Issued,
		Truncated: o.Reason == StdoutFlood || o.Reason == StderrFlood,
	})
}

// wordsOf returns the text that tells why the execution has not completed, and what the server adds
// to its stderr.
func (l *ledger) wordsOf(o Outcome) (text, added string) {
	if l.o.Words == nil || o.State == Completed {
		return "", ""
	}
	return l.o.Words.End(l.journal.Summary().Contract, o)
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
	case o.State == Completed:
	case o.Reason == RaisedError:
		code = 1
	case o.Reason == ExitedCode:
		code = o.Code
	default:
		return nil
	}
	return &code
}

const (
	// publishAfter is how long the first event of an execution may wait for a write to the store.
	publishAfter = 50 * time.Millisecond
	// publishOutput is how long output waits for a write to the store: long enough for the calls
	// that often follow it, whose pause is written together with it.
	publishOutput = time.Millisecond
)

// publish writes what the journal has noted, in the background, with no change of the state. One
// goroutine at a time does so.
func (l *ledger) publish() {
	if !l.publishing.CompareAndSwap(false, true) {
		return
	}
	l.published.Go(func() {
		retry := time.NewTicker(saveRetry)
		defer retry.Stop()
		for {
			// From here on, whatever is noted may be too late for this write.
			l.publishing.Store(false)
			if l.publishNow() == nil || !l.publishing.CompareAndSwap(false, true) {
				return
			}
			select {
			case <-retry.C:
			case <-l.left:
				return
			case <-l.over:
				return
			}
		}
	})
}

// publishNow writes what the journal has noted. A pause or an end that is not recorded yet brings
// it along, and an execution that is another server's is left alone.
func (l *ledger) publishNow() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.standing {
	case running, paused, undelivered:
	default:
		return nil
	}
	if !l.journal.Waits() {
		return nil
	}
	next := l.record
	next.Version++
	if err := l.write(context.Background(), &next); err != nil {
		return err
	}
	l.record = next
	return nil
}
