package sandbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// An Event is something that a sandbox has told: *Calls, Output, Exit, Stopped, Ran or Broken.
type Event interface{ event() }

func (Hello) event()   {}
func (*Calls) event()  {}
func (Output) event()  {}
func (Exit) event()    {}
func (Stopped) event() {}
func (Ran) event()     {}
func (Broken) event()  {}
func (answer) event()  {}

// Calls are the tool calls that a program pauses at. Nothing is checked of them yet.
type Calls struct{ frame }

// CallsOf returns calls as a worker could send them, as JSON.
func CallsOf(payload []byte) *Calls { return &Calls{frame{kind: frameCalls, payload: payload}} }

// Size is how many bytes of JSON the calls take.
func (c *Calls) Size() int { return len(c.payload) }

// Release ends the counting of the memory that the calls take.
func (c *Calls) Release() { c.release() }

// A Call is one call as the worker has sent it.
type Call struct {
	// Number is the program's own, and returns with the Result.
	Number int `json:"n"`
	// Toolset is the key of the toolset through which the program has called the tool, if any.
	Toolset string         `json:"toolset"`
	Tool    string         `json:"tool"`
	Input   jsontext.Value `json:"input"`
	// Line is the line of the program that made the call, or 0 if that is not known. The
	// program may have forged it.
	Line int `json:"-"`
	// Wakes is after which time an event loop of the program wants to run again, because a timer of its
	// own is due then, or 0. Only the first call has it.
	Wakes time.Duration `json:"-"`
}

// Name returns the name of the tool, after the key of its toolset and a dot if it has one.
func (c Call) Name() string {
	if c.Toolset == "" {
		return c.Tool
	}
	return c.Toolset + "." + c.Tool
}

// All yields the calls one at a time, so that a forged list costs no more than what is read
// of it. An error means that the worker has not sent a list of calls, and is the last.
func (c *Calls) All() iter.Seq2[Call, error] { return decodeCalls(c.payload) }

func decodeCalls(payload []byte) iter.Seq2[Call, error] {
	return func(yield func(Call, error) bool) {
		refuse := func(err error) { yield(Call{}, fmt.Errorf("calls: %w", err)) }
		d := jsontext.NewDecoder(bytes.NewBuffer(payload), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		if t, err := d.ReadToken(); err != nil || t.Kind() != jsontext.KindBeginArray {
			refuse(errors.New("no list"))
			return
		}
		for d.PeekKind() != jsontext.KindEndArray {
			var c struct {
				Call
				Line  jsontext.Value `json:"line"`
				Wakes jsontext.Value `json:"wakes"`
			}
			if err := jsonv2.UnmarshalDecode(d, &c); err != nil {
				refuse(err)
				return
			}
			c.Call.Line = readNumber(c.Line)
			c.Call.Wakes = time.Duration(readNumber(c.Wakes)) * time.Millisecond
			if !yield(c.Call, nil) {
				return
			}
		}
		if _, err := d.ReadToken(); err != nil {
			refuse(err)
		} else if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
			refuse(errors.New("something comes after them"))
		}
	}
}

// maxNumber is the largest number of a line, or of milliseconds, that is believed.
const maxNumber = 1 << 20

// readNumber returns the number of a line or of milliseconds, or 0 if it is none that a program can have.
func readNumber(value jsontext.Value) int {
	n, err := strconv.Atoi(string(value))
	if err != nil || n < 0 || n > maxNumber {
		return 0
	}
	return n
}

// An Output is a piece of what the program has printed. While the program runs they come in
// the order of their stream, without gaps, and before the calls that the program has made
// after it has printed them. They begin anew for each server that attaches, and the last piece
// is missing: an Exit has it all.
type Output struct {
	// Stderr tells stderr from stdout.
	Stderr bool
	// Offset is how many bytes of the stream come before Data.
	Offset int64
	Data   []byte
}

// An Exit is the supervisor's report of how the program ended, with all that it has printed.
type Exit struct {
	// Report is the worker's own, if it sent one. The supervisor's word counts for more.
	Report *Report `json:"-"`
	// Code is the exit code of the worker, negative for a signal, or nil if it has not ended
	// by itself.
	Code *int `json:"code"`
	// OutOfMemory says that the kernel has killed a process of the sandbox for memory.
	OutOfMemory bool `json:"oom"`
	// Broken says that the worker has broken the protocol.
	Broken bool `json:"broken"`
	// Over is the stream, "stdout" or "stderr", that has exceeded the limit of output.
	Over string `json:"over"`
	// Files says that the workspace is not empty.
	Files bool `json:"files"`
	// Line is the line at which the program stood when it was killed, or 0 if that is not known.
	// The program may have forged it.
	Line int `json:"-"`

	Stdout, Stderr []byte `json:"-"`
}

// A Report is what the worker says of the end of its program. The program may have forged it.
type Report struct {
	// Exit is the exit code, Error the last line of a traceback, if there was one.
	Exit  int    `json:"exit"`
	Error string `json:"error"`
	// OutOfMemory says that it was a MemoryError.
	OutOfMemory bool `json:"memory"`
	// Value is what the program has returned, if it was asked for.
	Value jsontext.Value `json:"value"`
}

// Stopped tells that the program of a paused sandbox has stopped, since the latest Stop or by
// the supervisor's own doing. It is never about an earlier pause.
type Stopped struct{}

// Ran tells for how long, in processor time, a program has run that was to stand still.
type Ran struct{ Time time.Duration }

// Broken tells that something was sent that breaks the protocol.
type Broken struct {
	// Err says what. It is the Holder's where that has refused memory.
	Err error
	// ByProgram says that the worker has sent it, which the program can cause.
	ByProgram bool
}

// An answer is to a question of List or Take, which receive it.
type answer struct{ frame }

// A translator makes events of frames.
type translator struct {
	stops  *stops
	limits Limits
	// report is the worker's, for the Exit that follows it.
	report *Report
}

// event makes an event of a frame, or none.
func (t *translator) event(f frame) Event {
	e, err := t.understand(f)
	if err != nil {
		return Broken{Err: err, ByProgram: f.kind == frameCalls || f.kind == frameDone}
	}
	return e
}

// understand is event with an error for what breaks the protocol.
func (t *translator) understand(f frame) (Event, error) {
	if f.err != nil {
		return nil, f.err
	}
	switch f.kind {
	case frameHello:
		var h Hello
		if err := json.Unmarshal(f.payload, &h); err != nil {
			return nil, fmt.Errorf("hello: %w", err)
		}
		return h, nil
	case frameCalls:
		t.stops.begin()
		return &Calls{f}, nil
	case frameOutput:
		return readOutput(f.payload, t.limits.output())
	case frameDone:
		r, err := readReport(f.payload)
		if err == nil {
			t.report = &r
		}
		return nil, err
	case frameExit:
		e, err := readExit(f.payload)
		e.Report = t.report
		return e, err
	case frameRan:
		nanoseconds, err := strconv.ParseUint(string(f.payload), 10, 62)
		if err != nil {
			return nil, fmt.Errorf("time that a program has run: %w", err)
		}
		return Ran{time.Duration(nanoseconds)}, nil
	default:
		return answer{f}, nil
	}
}

func readReport(payload []byte) (Report, error) {
	var r Report
	if err := json.Unmarshal(payload, &r); err != nil {
		return r, fmt.Errorf("report: %w", err)
	}
	return r, nil
}

// outputHead is the size of what stands before a piece of output: its stream and its offset.
const outputHead = 9

// readOutput takes an output frame apart. Its stream holds no more than limit bytes.
func readOutput(payload []byte, limit int64) (Event, error) {
	if len(payload) <= outputHead || payload[0] != 1 && payload[0] != 2 {
		return nil, errors.New("output: no piece of stdout or stderr")
	}
	offset, data := binary.BigEndian.Uint64(payload[1:]), payload[outputHead:]
	if offset > uint64(limit) || int64(offset)+int64(len(data)) > limit {
		return nil, errors.New("output: beyond the limit")
	}
	return Output{Stderr: payload[0] == 2, Offset: int64(offset), Data: data}, nil
}

// readExit takes an exit frame apart: a length, that much JSON, stdout and stderr.
func readExit(payload []byte) (Exit, error) {
	if len(payload) < 4 {
		return Exit{}, errors.New("exit: cut short")
	}
	length := uint64(binary.BigEndian.Uint32(payload))
	if length > uint64(len(payload)-4) {
		return Exit{}, errors.New("exit: cut short")
	}
	var head struct {
		Exit
		Stdout int            `json:"stdout"`
		Stderr int            `json:"stderr"`
		Line   jsontext.Value `json:"line"`
	}
	if err := json.Unmarshal(payload[4:4+length], &head); err != nil {
		return Exit{}, fmt.Errorf("exit: %w", err)
	}
	output := payload[4+length:]
	if head.Stdout < 0 || head.Stderr < 0 || head.Stdout > len(output) || head.Stdout+head.Stderr != len(output) {
		return Exit{}, errors.New("exit: lengths do not fit")
	}
	e := head.Exit
	e.Stdout, e.Stderr, e.Line = output[:head.Stdout], output[head.Stdout:], readNumber(head.Line)
	return e, nil
}
