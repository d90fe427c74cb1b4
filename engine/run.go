package engine

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"fermata/continuation"
)

// An ending is how a stretch of running came to rest.
type ending struct {
	state  State
	reason Reason
	detail string
	code   int
	stdout string
	stderr string
	// calls are the calls of a pause, pending the same for the record, issued how
	// many of them are new, size about how many bytes they take.
	calls   []Call
	pending []continuation.Call
	issued  int
	size    int64
	// leftFiles says that the workspace is not empty at the end; files to undelivered
	// are what became of it.
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

// run sends a frame that sets the program going and returns how it came to rest.
func (x *execution) run(kind frameKind, payload [][]byte) ending {
	x.e.pool.running(1)
	x.counted.move(Running)
	x.counted.release(x.stored)
	x.stored = 0
	began := time.Now()
	budget := x.conversation.budget()
	timer := time.NewTimer(budget)
	defer timer.Stop()
	e := x.wait(kind, payload, timer.C)
	x.rested = time.Now()
	e.ran = min(x.rested.Sub(began), budget)
	if e.state.terminal() {
		x.collect(&e)
	}
	return e
}

func (x *execution) wait(kind frameKind, payload [][]byte, timeout <-chan time.Time) ending {
	var err error
	switch kind {
	case 0:
	case frameResults:
		err = x.sandbox.resume(payload)
	default:
		err = x.sandbox.send(kind, payload...)
	}
	if err != nil {
		return x.sandbox.lost()
	}
	var done *report
	for {
		select {
		case f, ok := <-x.sandbox.frames:
			if !ok {
				return x.sandbox.lost()
			}
			if e, rested := x.hear(f, &done); rested {
				return e
			}
		case <-timeout:
			return x.kill(ending{state: TimedOut})
		case <-x.cancelled:
			return x.kill(ending{state: Cancelled})
		case <-x.conversation.left:
			return ending{state: Cancelled}
		}
	}
}

// broken ends a program after an error in what was sent: by its worker, which is the
// program's doing, or by the supervisor.
func (x *execution) broken(err error, reason Reason) ending {
	if stored, ok := errors.AsType[*storedError](err); ok {
		return x.kill(failed(TooMuchStored, "", int(stored.limit)))
	}
	level := slog.LevelWarn
	if reason == ProtocolBroken {
		level = slog.LevelInfo
	}
	x.e.o.Log.Log(context.Background(), level, "a sandbox broke the protocol", "execution", x.id, "reason", reason, "err", err)
	return x.kill(failed(reason, "", 0))
}

// hear takes one frame of a running program. It reports whether that brought the
// program to rest.
func (x *execution) hear(f frame, done **report) (e ending, rested bool) {
	err, reason := f.err, ProtocolBroken
	switch {
	case err != nil:
	case f.kind == frameCalls:
		e, err = x.accept(f.payload)
		// From here on what was made of it is counted, not the frame.
		f.release()
		if err == nil && e.state == Paused {
			err = x.hold(e.size)
		}
		if e.state == Failed {
			e = x.kill(e)
		}
	case f.kind == frameDone:
		var r report
		if r, err = readReport(f.payload); err == nil {
			*done = &r
			return ending{}, false
		}
	case f.kind == frameExit:
		e, err = readExit(f.payload, *done)
		reason = SandboxLost
	case f.kind == frameStopped:
		return ending{}, false // It answers the pause before, which is over already.
	case f.kind == frameRan:
		if err = x.ran(f.payload); err == nil {
			return ending{}, false
		}
		reason = SandboxLost
	default:
		err, reason = fmt.Errorf("frame %q of a running program", f.kind), SandboxLost
	}
	if err != nil {
		e = x.broken(err, reason)
	}
	return e, true
}

// killTimeout is how long a sandbox may take to report after it was told to end its
// program; then it is destroyed and what was printed is lost.
const killTimeout = 3 * time.Second

// kill has the program ended and adds to e what it has printed.
func (x *execution) kill(e ending) ending {
	if !x.conversation.owned() {
		return e
	}
	if err := x.sandbox.send(frameKill); err != nil {
		return e
	}
	timer := time.NewTimer(killTimeout)
	defer timer.Stop()
	for {
		select {
		case f, ok := <-x.sandbox.frames:
			if !ok {
				return e
			}
			if f.kind != frameExit {
				continue
			}
			if exit, stdout, stderr, err := splitExit(f.payload); err == nil {
				e.stdout, e.stderr, e.leftFiles = text(stdout), text(stderr), exit.Files
			}
			return e
		case <-timer.C:
			return e
		}
	}
}

// A report is what the worker says of the program's end.
type report struct {
	Exit   int    `json:"exit"`
	Error  string `json:"error"`
	Memory bool   `json:"memory"`
}

func readReport(payload []byte) (report, error) {
	var r report
	if err := json.Unmarshal(payload, &r); err != nil {
		return r, fmt.Errorf("report: %w", err)
	}
	return r, nil
}

// An exit is what the supervisor says of it. Its word counts for more.
type exit struct {
	Code   *int   `json:"code"`
	OOM    bool   `json:"oom"`
	Broken bool   `json:"broken"`
	Stdout int    `json:"stdout"`
	Stderr int    `json:"stderr"`
	Over   string `json:"over"`
	Files  bool   `json:"files"`
}

// splitExit takes an exit frame apart: a length, that much JSON, stdout and stderr.
func splitExit(payload []byte) (x exit, stdout, stderr []byte, err error) {
	if len(payload) < 4 {
		return x, nil, nil, errors.New("exit: cut short")
	}
	length := uint64(binary.BigEndian.Uint32(payload))
	if length > uint64(len(payload)-4) {
		return x, nil, nil, errors.New("exit: cut short")
	}
	if err := json.Unmarshal(payload[4:4+length], &x); err != nil {
		return x, nil, nil, fmt.Errorf("exit: %w", err)
	}
	output := payload[4+length:]
	if x.Stdout < 0 || x.Stderr < 0 || x.Stdout > len(output) || x.Stdout+x.Stderr != len(output) {
		return x, nil, nil, errors.New("exit: lengths do not fit")
	}
	return x, output[:x.Stdout], output[x.Stdout:], nil
}

func readExit(payload []byte, done *report) (ending, error) {
	x, stdout, stderr, err := splitExit(payload)
	if err != nil {
		return ending{}, err
	}
	e := verdict(x, done)
	e.stdout, e.stderr, e.leftFiles = text(stdout), text(stderr), x.Files
	return e, nil
}

// verdict tells how a program ended by itself.
func verdict(x exit, done *report) ending {
	switch {
	case x.Over == "stdout":
		return failed(StdoutFlood, "", 0)
	case x.Over == "stderr":
		return failed(StderrFlood, "", 0)
	case done != nil && done.Memory, x.OOM && done == nil:
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

// maxDetail bounds what a program can put into the error text of an answer, in bytes.
const maxDetail = 16 << 10

// detail makes an error text of what a program sent as one.
func detail(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxDetail)], "\uFFFD")
}

// text makes valid UTF-8 of what a program wrote.
func text(b []byte) string {
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// encodeResults matches results with the calls that are pending and returns the
// payload of a results frame, in parts so that large results are not copied.
func encodeResults(pending []continuation.Call, results []Result) ([][]byte, error) {
	numbers := make(map[string]int, len(pending))
	for _, c := range pending {
		numbers[c.ID] = c.Number
	}
	payload := append(make([][]byte, 0, 3*len(results)+2), []byte{'['})
	separator := ""
	for _, r := range results {
		number, ok := numbers[r.CallID]
		if !ok {
			return nil, &ResultError{CallID: r.CallID}
		}
		// A second result for the same call finds nothing pending.
		delete(numbers, r.CallID)
		key, value := "value", r.Value
		if r.Failed {
			key, value = "error", r.Message
		}
		if len(value) == 0 {
			value = json.RawMessage("null")
		}
		payload = append(payload, fmt.Appendf(nil, `%s{"n":%d,"%s":`, separator, number, key), value, []byte{'}'})
		separator = ","
	}
	return append(payload, []byte{']'}), nil
}
