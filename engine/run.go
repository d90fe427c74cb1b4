package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"fermata/continuation"
	"fermata/engine/journal"
	"fermata/engine/sandbox"
)

// An ending tells how a segment came to rest: in a pause, or at the end of the execution.
type ending struct {
	state  State
	reason Reason
	detail string
	code   int
	// calls are the calls of a pause as the client sees them, and pending are the same calls as
	// the record keeps them. issued are those that are new, and size is about how many bytes all
	// of them take.
	calls   []Call
	pending []continuation.Call
	issued  []issuedCall
	size    int64
	// printed is all that the program has printed, if the sandbox has told of the end. Then the
	// sandbox can also be asked for files.
	printed *printed
	// leftFiles is true if the workspace is not empty at the end. The fields from files to
	// undelivered tell what became of its files.
	leftFiles   bool
	files       []OutputFile
	deleted     []string
	skipped     Skipped
	undelivered int
	// ran is how much of the run budget the segment took.
	ran time.Duration
}

// An issuedCall is a call that no earlier pause had. line is the line of the program that made it,
// as the program claims.
type issuedCall struct {
	Call
	line int
}

// printed is what a program has printed.
type printed struct{ stdout, stderr []byte }

func (e ending) outcome(session string) Outcome {
	o := Outcome{
		State: e.state, Session: session, Reason: e.reason, Detail: e.detail, Code: e.code,
		Files: e.files, Deleted: e.deleted, Skipped: e.skipped, Undelivered: e.undelivered,
	}
	if e.printed != nil {
		o.Stdout, o.Stderr = journal.Decode(e.printed.stdout), journal.Decode(e.printed.stderr)
	}
	return o
}

func failed(reason Reason, detail string, code int) ending {
	return ending{state: Failed, reason: reason, detail: detail, code: code}
}

// A delivery is what sets a program going: the program itself, or the results of its calls. The
// zero value is for a program that runs already.
type delivery struct {
	program *sandbox.Program
	results []sandbox.Result // not nil, even if there are none
}

// to sends the delivery to a sandbox.
func (d delivery) to(c *sandbox.Conn) error {
	switch {
	case d.program != nil:
		return c.Run(*d.program)
	case d.results != nil:
		return c.Resume(d.results)
	}
	return nil
}

// run runs one segment: it delivers d, waits until the program comes to rest, and collects the
// files of a program that has ended.
func (x *execution) run(d delivery) ending {
	x.pool.Running(1)
	x.counted.move(Running)
	x.counted.Release(x.stored)
	x.stored = 0
	began := time.Now()
	budget := x.conversation.budget()
	timer := time.NewTimer(budget)
	defer timer.Stop()
	e := x.wait(d, timer.C)
	x.rested = time.Now()
	e.ran = min(x.rested.Sub(began), budget)
	if e.state.terminal() {
		x.collect(&e)
	}
	return e
}

// collect adds to e the files that a program has left in its workspace. Every process of the
// program is dead by then.
func (x *execution) collect(e *ending) {
	record := x.conversation.copy()
	if e.printed == nil || !e.leftFiles && len(record.Inputs) == 0 || x.files == nil || !x.conversation.owned() {
		return
	}
	c := collection{sandbox: x.sandbox, store: x.files, log: x.log, record: record, inputs: map[string]*InputFile{}}
	c.collect(e)
}

// wait delivers d and returns how the program came to rest: it paused, ended, or was killed.
func (x *execution) wait(d delivery, timeout <-chan time.Time) ending {
	if err := d.to(x.sandbox); err != nil {
		return sandboxLost(x.sandbox.Err())
	}
	unpublished := time.NewTimer(publishAfter)
	defer unpublished.Stop()
	for {
		select {
		case event, ok := <-x.sandbox.Events():
			if !ok {
				return sandboxLost(x.sandbox.Err())
			}
			if output, ok := event.(sandbox.Output); ok {
				if x.print(output) {
					unpublished.Reset(publishOutput)
				}
			} else if e, rested := x.hear(event); rested {
				return e
			}
		case <-unpublished.C:
			x.conversation.publish()
		case <-timeout:
			return x.kill(ending{state: TimedOut})
		case <-x.conversation.cancelled:
			return x.kill(ending{state: Cancelled})
		case <-x.conversation.left:
			return ending{state: Cancelled}
		}
	}
}

// print tells the journal what the program has printed, and reports whether that was news.
func (x *execution) print(o sandbox.Output) bool {
	stream := journal.Stdout
	if o.Stderr {
		stream = journal.Stderr
	}
	return x.conversation.journal.Print(stream, o.Offset, o.Data)
}

// sandboxLost returns the ending of a program whose sandbox has gone, or does not read what it
// is sent. err is why the stream has ended, or nil if that is not known.
func sandboxLost(err error) ending {
	if errors.Is(err, sandbox.ErrOutOfMemory) {
		return failed(OutOfMemory, "", 0)
	}
	return failed(SandboxLost, "", 0)
}

// broken kills a program whose sandbox has sent something that breaks the protocol. If the
// worker has sent it, the program counts as failed; if the supervisor has, the sandbox as lost.
func (x *execution) broken(b sandbox.Broken) ending {
	if stored, ok := errors.AsType[*storedError](b.Err); ok {
		return x.kill(failed(TooMuchStored, "", int(stored.limit)))
	}
	level, reason := slog.LevelWarn, SandboxLost
	if b.ByProgram {
		level, reason = slog.LevelInfo, ProtocolBroken
	}
	x.log.Log(context.Background(), level, "a sandbox broke the protocol", "execution", x.id, "reason", reason, "err", b.Err)
	return x.kill(failed(reason, "", 0))
}

// hear handles one event of a running program. It reports whether the program has come to rest.
func (x *execution) hear(event sandbox.Event) (e ending, rested bool) {
	switch event := event.(type) {
	case *sandbox.Calls:
		e, err := x.checker.accept(event, x.conversation.copy())
		// From here on hold counts the checked calls; the bytes of the frame count no more.
		event.Release()
		if err == nil && e.state == Paused {
			err = x.hold(e.size)
		}
		switch {
		case err != nil:
			e = x.broken(sandbox.Broken{Err: err, ByProgram: true})
		case e.state == Failed:
			e = x.kill(e)
		}
		return e, true
	case sandbox.Exit:
		return exited(event), true
	case sandbox.Ran:
		x.conversation.spend(event.Time)
		return ending{}, false
	case sandbox.Broken:
		return x.broken(event), true
	default:
		return x.broken(sandbox.Broken{Err: fmt.Errorf("%T of a running program", event)}), true
	}
}

// killTimeout is how long a sandbox may take to report the exit of a program that it was told to
// kill. After that the sandbox is destroyed, and the output of the program is lost.
const killTimeout = 3 * time.Second

// kill has the sandbox kill the program, and returns e with the program's output.
func (x *execution) kill(e ending) ending {
	if !x.conversation.owned() {
		return e
	}
	if err := x.sandbox.Kill(); err != nil {
		return e
	}
	timer := time.NewTimer(killTimeout)
	defer timer.Stop()
	for {
		select {
		case event, ok := <-x.sandbox.Events():
			if !ok {
				return e
			}
			if exit, ok := event.(sandbox.Exit); ok {
				return e.with(exit)
			}
		case <-timer.C:
			return e
		}
	}
}

// with returns e with the program's output, and with whether the program has left files.
func (e ending) with(x sandbox.Exit) ending {
	e.printed, e.leftFiles = &printed{x.Stdout, x.Stderr}, x.Files
	return e
}

// exited returns the ending of a program that was not killed by the server.
func exited(x sandbox.Exit) ending { return verdict(x).with(x) }

// verdict decides how a program has ended. A flood, which the supervisor has seen, overrides the
// worker's report, which the program may have forged. Without a report the supervisor decides.
func verdict(x sandbox.Exit) ending {
	switch done := x.Report; {
	case x.Over == "stdout":
		return failed(StdoutFlood, "", 0)
	case x.Over == "stderr":
		return failed(StderrFlood, "", 0)
	case done != nil && done.OutOfMemory, x.OutOfMemory && done == nil:
		return failed(OutOfMemory, "", 0)
	case done != nil && done.Error != "":
		return failed(RaisedError, detail(done.Error), 0)
	case done != nil && done.Exit != 0:
		return failed(ExitedCode, "", done.Exit)
	case done != nil:
		return ending{state: Completed}
	case x.Broken:
		return failed(ProtocolBroken, "", 0)
	case x.Code == nil:
		return failed(SandboxLost, "", 0)
	case *x.Code != 0:
		return failed(ExitedCode, "", *x.Code)
	default:
		return ending{state: Completed}
	}
}

// maxDetail bounds an error text that a program has chosen, in bytes.
const maxDetail = 16 << 10

// detail cuts an error text that a program has chosen to maxDetail bytes and makes it valid
// UTF-8.
func detail(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxDetail)], "\uFFFD")
}

// matchResults translates the results of a client for the sandbox, which knows the pending calls
// by their numbers. A ResultError names the first result whose call is not pending.
func matchResults(pending []continuation.Call, results []Result) ([]sandbox.Result, error) {
	numbers := make(map[string]int, len(pending))
	for _, c := range pending {
		numbers[c.ID] = c.Number
	}
	matched := make([]sandbox.Result, 0, len(results))
	for _, r := range results {
		number, ok := numbers[r.CallID]
		if !ok {
			return nil, &ResultError{CallID: r.CallID}
		}
		// A second result for the same call finds nothing pending.
		delete(numbers, r.CallID)
		value := r.Value
		if r.Failed {
			value = r.Message
		}
		matched = append(matched, sandbox.Result{Number: number, Value: value, Failed: r.Failed})
	}
	return matched, nil
}
