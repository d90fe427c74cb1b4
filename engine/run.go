package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"fermata/continuation"
	"fermata/engine/sandbox"
)

// An ending tells how a stretch of running came to rest: paused, or at its end.
type ending struct {
	state  State
	reason Reason
	detail string
	code   int
	stdout string
	stderr string
	// calls are the calls of a pause as the client sees them, pending the same calls as the
	// record keeps them. issued is how many of them are new, size about how many bytes they
	// take.
	calls   []Call
	pending []continuation.Call
	issued  int
	size    int64
	// leftFiles says that the workspace is not empty at the end. The fields from files to
	// undelivered tell what became of its files.
	leftFiles   bool
	files       []OutputFile
	deleted     []string
	skipped     Skipped
	undelivered int
	// ran is the time that counts against the budget.
	ran time.Duration
}

func (e ending) outcome(session string) Outcome {
	return Outcome{
		State: e.state, Session: session, Stdout: e.stdout, Stderr: e.stderr,
		Reason: e.reason, Detail: e.detail, Code: e.code,
		Files: e.files, Deleted: e.deleted, Skipped: e.skipped, Undelivered: e.undelivered,
	}
}

func failed(reason Reason, detail string, code int) ending {
	return ending{state: Failed, reason: reason, detail: detail, code: code}
}

// A delivery sets a program going: it is the program itself, or the results of its calls. The
// zero value is for a program that runs already.
type delivery struct {
	program *sandbox.Program
	results []sandbox.Result // not nil, even if there are none
}

// to hands the delivery over to a sandbox.
func (d delivery) to(c *sandbox.Conn) error {
	switch {
	case d.program != nil:
		return c.Run(*d.program)
	case d.results != nil:
		return c.Resume(d.results)
	}
	return nil
}

// run hands over what sets the program going and returns how the program came to rest.
func (x *execution) run(d delivery) ending {
	x.e.pool.Running(1)
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

// wait returns how the program came to rest: at a pause, by itself, or because it was ended.
func (x *execution) wait(d delivery, timeout <-chan time.Time) ending {
	if err := d.to(x.sandbox); err != nil {
		return sandboxLost(x.sandbox.Err())
	}
	for {
		select {
		case event, ok := <-x.sandbox.Events():
			if !ok {
				return sandboxLost(x.sandbox.Err())
			}
			if e, rested := x.hear(event); rested {
				return e
			}
		case <-timeout:
			return x.kill(ending{state: TimedOut})
		case <-x.conversation.cancelled:
			return x.kill(ending{state: Cancelled})
		case <-x.conversation.left:
			return ending{state: Cancelled}
		}
	}
}

// sandboxLost is the end of a program whose sandbox has gone or does not take what it is sent.
// err is why its stream has ended, nil if that is not known.
func sandboxLost(err error) ending {
	if errors.Is(err, sandbox.ErrOutOfMemory) {
		return failed(OutOfMemory, "", 0)
	}
	return failed(SandboxLost, "", 0)
}

// broken ends a program after something was sent that breaks the protocol: by its worker,
// which is the program's doing, or by the supervisor.
func (x *execution) broken(b sandbox.Broken) ending {
	if stored, ok := errors.AsType[*storedError](b.Err); ok {
		return x.kill(failed(TooMuchStored, "", int(stored.limit)))
	}
	level, reason := slog.LevelWarn, SandboxLost
	if b.ByProgram {
		level, reason = slog.LevelInfo, ProtocolBroken
	}
	x.e.o.Log.Log(context.Background(), level, "a sandbox broke the protocol", "execution", x.id, "reason", reason, "err", b.Err)
	return x.kill(failed(reason, "", 0))
}

// hear takes one event of a running program. It reports whether that brought the program to
// rest.
func (x *execution) hear(event sandbox.Event) (e ending, rested bool) {
	switch event := event.(type) {
	case *sandbox.Calls:
		e, err := x.accept(event)
		// From here on what was made of the calls is counted, not the calls.
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

// killTimeout is how long a sandbox may take to report after it was told to end its program.
// After that the sandbox is destroyed, and what the program has printed is lost.
const killTimeout = 3 * time.Second

// kill has the sandbox end the program, and adds to e what the program has printed.
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

// with returns e with what the program has printed, and whether it has left files.
func (e ending) with(x sandbox.Exit) ending {
	e.stdout, e.stderr, e.leftFiles = text(x.Stdout), text(x.Stderr), x.Files
	return e
}

// exited is the end of a program that has ended by itself.
func exited(x sandbox.Exit) ending { return verdict(x).with(x) }

// verdict tells why a program has ended by itself. The supervisor's word counts for more than
// the worker's report, which the program may have forged.
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

// maxDetail bounds the part of an answer's error text that a program can choose, in bytes.
const maxDetail = 16 << 10

// detail makes what a program has sent as an error text short enough, and valid UTF-8.
func detail(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxDetail)], "\uFFFD")
}

// text makes what a program has written valid UTF-8.
func text(b []byte) string {
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// matchResults returns the results for a sandbox, which knows pending calls by their numbers.
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
