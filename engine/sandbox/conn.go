package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"fermata/python"
)

// writeTimeout bounds one write to a sandbox. A supervisor always reads, so one that does
// not take a write within this time is sick.
const writeTimeout = 10 * time.Second

// A Conn is the connection of this server to one sandbox, with a method for each verb of the protocol. One goroutine
// at a time calls its verbs and receives its events.
type Conn struct {
	// Ref is the provider's reference to the sandbox.
	Ref string
	// Marker is what the supervisor answers an attach with: the same bytes each time, and
	// random. Where all servers share one stream it shows where this server's part begins,
	// should the server before it have died in the middle of a frame.
	Marker []byte
	// Hello is what the supervisor said when this server attached.
	Hello Hello

	limits Limits
	stream Stream
	holder atomic.Pointer[Holder]
	stops  *stops
	events chan Event
	// ended is closed when the stream has ended, for the reason err.
	ended chan struct{}
	err   error
	// quit is closed to end the reader when nobody receives any more.
	quit chan struct{}
	// born is when this server attached.
	born time.Time
}

// A Hello is the supervisor's answer to an attach.
type Hello struct {
	Protocol int   `json:"protocol"`
	State    State `json:"state"`
	// Round is how often the program has paused.
	Round int `json:"round"`
	// Ran is for how long the program may have run while it had no server, in nanoseconds.
	Ran time.Duration `json:"ran"`
}

// Attach opens the connection to a sandbox and waits until the sandbox says that it is there.
func Attach(ctx context.Context, p Provider, ref string, marker []byte, limits Limits) (*Conn, error) {
	stream, err := p.Attach(ctx, ref)
	if err != nil {
		return nil, err
	}
	c := &Conn{
		Ref: ref, Marker: marker, limits: limits, stream: stream, stops: newStops(), born: time.Now(),
		events: make(chan Event), ended: make(chan struct{}), quit: make(chan struct{}),
	}
	go c.read()
	if c.Hello, err = greet(ctx, c); err != nil {
		c.Detach()
		return nil, fmt.Errorf("attach to sandbox %s: %w", ref, err)
	}
	return c, nil
}

// greet attaches to the supervisor at the other end and returns its answer.
func greet(ctx context.Context, c *Conn) (Hello, error) {
	if err := c.send(frameAttach, c.Marker); err != nil {
		return Hello{}, err
	}
	e, err := c.next(ctx)
	if err != nil {
		return Hello{}, err
	}
	hello, ok := e.(Hello)
	if !ok {
		return Hello{}, fmt.Errorf("%T in place of a hello", e)
	}
	if hello.Protocol != python.Protocol {
		return Hello{}, fmt.Errorf("the sandbox's runner speaks protocol %d and this server %d: "+
			"make the sandbox image again, from this server's version", hello.Protocol, python.Protocol)
	}
	return hello, nil
}

// Events yields what happens in the sandbox, in the order in which it happens. It is closed
// when the stream has ended; Err then tells why.
func (c *Conn) Events() <-chan Event { return c.events }

// Err returns why the stream has ended, or nil if it has not.
func (c *Conn) Err() error {
	select {
	case <-c.ended:
		return c.err
	default:
		return nil
	}
}

// CountBy has h count the large frames of calls that come from now on.
func (c *Conn) CountBy(h Holder) { c.holder.Store(&h) }

// A Program is what a sandbox runs.
type Program struct {
	// Mode tells the runner how: empty for Python.
	Mode string `json:"mode,omitempty"`
	// Code is a JSON string.
	Code json.RawMessage `json:"code"`
	// Stubs are the definitions of the tools, in the program's language.
	Stubs string   `json:"stubs"`
	Tools []string `json:"tools,omitempty"`
	Args  []string `json:"args,omitempty"`
	// Required are the arguments that calls of each of Tools must have, for Bash. In Python the stubs have them.
	Required [][]string `json:"required,omitempty"`
	// Value asks for what the program returns or leaves on its last line.
	Value bool `json:"value,omitempty"`
	// Package is the name of the package from which programs import Toolsets.
	Package  string   `json:"package,omitempty"`
	Toolsets []Module `json:"toolsets,omitempty"`
	// Directories are made in the workspace before the program starts.
	Directories []string `json:"directories,omitempty"`
	// OutputFiles is how many files of the program are kept at most. Run sets it, so that the program's author
	// is told of the others.
	OutputFiles int `json:"output_files,omitempty"`
}

// A Module is a toolset as a program finds it.
type Module struct {
	Key   string `json:"key"`
	Class string `json:"class"`
	// Source is the source of the module, for Python.
	Source string `json:"source,omitempty"`
	// Methods are the names of the tools by those of their methods, for Bash.
	Methods map[string]string `json:"methods,omitempty"`
}

// Run starts the program of a sandbox that is ready.
func (c *Conn) Run(p Program) error {
	p.OutputFiles = c.limits.OutputFiles
	program, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode program: %w", err)
	}
	return c.send(frameProgram, program)
}

// A Result answers one call of a paused program.
type Result struct {
	// Number is the call's. A result with the number 0 is for no call: it says that the program was not
	// paused while it waited, so that the timers of its event loops count the time.
	Number int
	// Value is JSON: the result, or the text of the exception if the call Failed. Empty stands
	// for null.
	Value  json.RawMessage
	Failed bool
	// About, if it is set, is an object whose members become attributes of the exception.
	About json.RawMessage
}

// Resume hands over the results of the calls that a program waits for, and lets it go on.
func (c *Conn) Resume(results []Result) error {
	c.stops.over()
	return c.send(frameResults, encodeResults(results)...)
}

// encodeResults returns the payload of a results frame, in parts so that large results are
// not copied.
func encodeResults(results []Result) [][]byte {
	payload := append(make([][]byte, 0, 3*len(results)+2), []byte{'['})
	separator := ""
	for _, r := range results {
		key := "value"
		if r.Failed {
			key = "error"
		}
		value := r.Value
		if len(value) == 0 {
			value = json.RawMessage("null")
		}
		payload = append(payload, fmt.Appendf(nil, `%s{"n":%d,"%s":`, separator, r.Number, key), value)
		if len(r.About) > 0 {
			payload = append(payload, []byte(`,"about":`), r.About)
		}
		payload = append(payload, []byte{'}'})
		separator = ","
	}
	return append(payload, []byte{']'})
}

// Stop stops what still runs of a paused program. The event Stopped tells when all of it has
// stopped.
func (c *Conn) Stop() error {
	return c.send(frameStop, strconv.AppendInt(nil, c.stops.ask(), 10))
}

// Kill ends the program. The event Exit tells what it has printed.
func (c *Conn) Kill() error { return c.send(frameKill) }

// KillAndTell ends the program like Kill, and has the Exit tell the line at which it stood. To
// find that out may take the supervisor up to 90 ms.
func (c *Conn) KillAndTell() error { return c.send(frameKill, []byte("line")) }

// Detach closes the connection. The sandbox stays.
func (c *Conn) Detach() {
	close(c.quit)
	// The reader and the other end notice; there is nothing to do about an error.
	_ = c.stream.Close()
}

// send writes one frame to the supervisor.
func (c *Conn) send(kind frameKind, parts ...[]byte) error {
	if err := c.stream.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return writeFrame(c.stream, kind, parts...)
}

// next returns the next event, or why there is none.
func (c *Conn) next(ctx context.Context) (Event, error) {
	select {
	case e, ok := <-c.events:
		if !ok {
			return nil, fmt.Errorf("%w: %w", ErrGone, c.err)
		}
		return e, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// read passes on events until the stream ends or breaks.
func (c *Conn) read() {
	defer close(c.ended)
	defer close(c.events)
	r := &frameReader{Reader: bufio.NewReaderSize(c.stream, 1<<14), limits: c.limits, holder: func() Holder {
		if h := c.holder.Load(); h != nil {
			return *h
		}
		return nil
	}}
	if c.err = skipPast(r, c.Marker); c.err != nil {
		return
	}
	t := translator{stops: c.stops, limits: c.limits}
	for {
		f, err := r.next()
		if err != nil {
			c.err = err
			return
		}
		if f.kind == frameStopped && f.err == nil {
			c.stops.offer(f.payload, c.events, c.quit)
			continue
		}
		e := t.event(f)
		if e == nil {
			continue
		}
		select {
		case c.events <- e:
		case <-c.quit:
			c.err = io.ErrClosedPipe
			return
		}
	}
}
