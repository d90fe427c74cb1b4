package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/engine/tools/outgoing"
	"fermata/engine/tools/source"
)

// The states of a source.
const (
	Starting    = "starting"    // the tools are not known yet
	Ready       = "ready"       // the tools are known, and the last connection has succeeded
	Unavailable = "unavailable" // the last connection has failed
)

// A State is the state of a source, with its reasons.
type State struct {
	// State is Starting, Ready or Unavailable.
	State string
	// Reason says in this server's words why the source is unavailable.
	Reason string
	// Changes are sentences about tools that are hidden because they are new or have changed since
	// they were pinned.
	Changes []string
}

// A Source offers and runs the tools of one MCP server. It implements source.Source.
type Source struct {
	o    Options
	ctx  context.Context // of all sessions
	stop context.CancelFunc
	wg   sync.WaitGroup // of all sessions

	mu      sync.Mutex
	slots   map[string]*slot // by principal
	pinned  map[string]listed
	offered []source.Tool
	failed  reason // of the last connection, or empty
	changes []string
	backOff backOff // of connections
}

// A slot is a principal's place for a session.
type slot struct {
	session *session
	ready   chan struct{} // closed when the connection attempt under way has ended; nil if there is none
	err     error         // the error of the attempt
	backOff backOff       // of sessions that end right after their start
}

// A backOff says when the next attempt may be made.
type backOff struct {
	failures int
	until    time.Time
	why      error
}

// fail notes a failure.
func (b *backOff) fail(t *times, why error) {
	wait := t.backOffMax
	if b.failures < 20 {
		wait = min(t.backOff<<b.failures, t.backOffMax)
	}
	b.failures++
	b.until, b.why = time.Now().Add(wait), why
}

// blocked returns the last failure if it is too early for another attempt, and nil otherwise.
func (b *backOff) blocked() error {
	if b.why != nil && time.Now().Before(b.until) {
		return b.why
	}
	return nil
}

var _ source.Source = (*Source)(nil)

// New returns the source of an MCP server. It opens no connection.
func New(o Options) (*Source, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Source{o: o, slots: map[string]*slot{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Tools connects to the server when it is called for the first time, and pins the tools that the server
// offers. From then on it returns these. The text of a failure calls the server "it".
func (s *Source) Tools(ctx context.Context) ([]source.Tool, error) {
	if tools := s.known(); tools != nil {
		return tools, nil
	}
	if _, err := s.session(ctx, ""); err != nil {
		return nil, &source.CallError{Message: string(reasonOf(err)), Err: cause(err)}
	}
	return s.known(), nil
}

// known returns the pinned tools, or nil.
func (s *Source) known() []source.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.offered)
}

// State returns the state of the source.
func (s *Source) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := State{State: Ready, Changes: slices.Clone(s.changes)}
	switch {
	case s.failed != "":
		st.State, st.Reason = Unavailable, string(s.failed)
	case s.pinned == nil:
		st.State = Starting
	}
	return st
}

// Close ends all sessions. It returns an error if ctx ends before they have.
func (s *Source) Close(ctx context.Context) error {
	s.mu.Lock() // No session is opened after this.
	s.stop()
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.wg.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the MCP servers of toolset %s have not ended: %w", s.o.Toolset, ctx.Err())
	}
}

// Call implements source.Source. A call is sent at most once.
func (s *Source) Call(ctx context.Context, c source.Call) (json.RawMessage, error) {
	principal := c.Principal
	if s.o.Shared {
		principal = ""
	}
	for again := true; ; again = false {
		sn, err := s.session(ctx, principal)
		if err != nil {
			return nil, unavailable(err)
		}
		if !sn.begin() {
			if again {
				continue // The session has ended since.
			}
			return nil, unavailable(errEnded)
		}
		v, sent, err := s.callIn(ctx, sn, c)
		sn.finish()
		if err != nil && !sent && again && ctx.Err() == nil && sn.dead() {
			continue // The session was dead, and the server has not got the call.
		}
		return v, err
	}
}

// dead waits a moment for the end of a session in which a call has failed, and reports whether the session
// has ended.
func (s *session) dead() bool {
	select {
	case <-s.over:
		return true
	case <-time.After(100 * time.Millisecond):
		return false
	}
}

// callIn makes a call in a session, and tells whether the server may have got it.
func (s *Source) callIn(ctx context.Context, sn *session, c source.Call) (v json.RawMessage, sent bool, err error) {
	if err := s.refresh(ctx, sn); err != nil {
		return nil, false, unavailable(sn.guard.reason(err))
	}
	s.mu.Lock()
	_, known := s.pinned[c.Tool]
	s.mu.Unlock()
	sn.mu.Lock()
	why, hidden := sn.hidden[c.Tool]
	sn.mu.Unlock()
	switch {
	case hidden:
		return nil, true, &source.CallError{Message: "the tool " + quote(c.Tool) + " " + why + "; it is not called until the operator has accepted it"}
	case !known:
		return nil, true, &source.CallError{Message: "the MCP server of this toolset has no tool " + quote(c.Tool)}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // This ends the stream of the answer, too.
	ctx, x := withExchange(ctx, sn.hold())
	defer x.end()
	_, err = sn.mcp.CallTool(ctx, &mcp.CallToolParams{Name: c.Tool, Arguments: c.Input})
	if answer := x.answer.Load(); answer != nil {
		if answer.Error != nil {
			return nil, true, &source.CallError{Message: "the MCP server answered with an error: " + words(answer.Error.Error())}
		}
		v, err := value(answer.Result, s.o.Text(c.Tool), c.MaxResult)
		return v, true, err
	}
	status := x.status.Load()
	if status == 404 && sn.guard.SessionID() != "" {
		return nil, false, unavailable(errors.Join(errEnded, err)) // The server has forgotten the session.
	}
	if status >= 400 && status < 500 {
		return nil, true, &source.CallError{Message: "the MCP server did not take the call: " + string(statusReason(status)), Err: cause(err)}
	}
	if !x.sent.Load() {
		if ctx.Err() != nil {
			return nil, false, &source.CallError{Message: "the call has ended before it was sent", Err: ctx.Err()}
		}
		return nil, false, unavailable(sn.guard.reason(err))
	}
	f := &source.CallError{Unknown: true, Err: cause(sn.guard.reason(err))}
	var r reason
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		f.Message = "the MCP server did not answer in time"
	case ctx.Err() != nil:
		f.Message = "the call was cancelled"
	case status != 0:
		f.Message = "the MCP server has failed: " + string(statusReason(status))
	case x.refused.Load():
		f.Message = string(outgoing.Busy)
	case errors.As(sn.guard.reason(err), &r):
		f.Message = "the connection to the MCP server has ended: " + string(r)
	default:
		f.Message = "the connection to the MCP server was lost before the answer was there"
	}
	f.Message += "; whether the call took effect is unknown"
	return nil, true, f
}

// refresh lists the tools again if the server has said that they have changed, or if the last listing was
// long ago. It hides the tools that differ from the pinned ones.
func (s *Source) refresh(ctx context.Context, sn *session) error {
	sn.listing.Lock()
	defer sn.listing.Unlock()
	sn.mu.Lock()
	old := time.Since(sn.asked) > s.o.times.fresh
	sn.mu.Unlock()
	if !sn.guard.changed.Swap(false) && !old {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.times.start)
	defer cancel()
	tools, err := list(ctx, sn)
	if err != nil {
		sn.guard.changed.Store(true) // The tools are listed again before the next call.
		return err
	}
	s.compare(sn, tools)
	return nil
}

// compare hides in a session what differs from the pinned tools, and reports it.
func (s *Source) compare(sn *session, tools []listed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sn.mu.Lock()
	defer sn.mu.Unlock()
	sn.asked = time.Now()
	if tools == nil {
		return
	}
	now := make(map[string]bool, len(tools))
	for _, t := range tools {
		now[t.tool.Name] = true
		switch pin, ok := s.pinned[t.tool.Name]; {
		case !ok && isWanted(s, t.tool.Name) && t.flaw == "":
			s.report(t.tool.Name, "is new")
		case ok && pin.digest != t.digest:
			sn.hidden[t.tool.Name] = "has changed at its MCP server" // It stays hidden until the session ends.
			s.report(t.tool.Name, sn.hidden[t.tool.Name])
		}
	}
	for name := range s.pinned {
		const gone = "is offered no longer by its MCP server"
		switch why := sn.hidden[name]; {
		case !now[name] && why == "":
			sn.hidden[name] = gone
			s.report(name, gone)
		case now[name] && why == gone:
			delete(sn.hidden, name)
		}
	}
}

// report notes a change of a tool once. The caller holds mu.
func (s *Source) report(name, change string) {
	sentence := "The tool " + quote(name) + " " + change + "."
	if len(s.changes) >= maxReported || slices.Contains(s.changes, sentence) {
		return
	}
	s.changes = append(s.changes, sentence)
	s.o.Log.Warn("a tool of an MCP server is hidden until the toolsets file is read again", slog.String("toolset", s.o.Toolset), slog.String("tool", quote(name)), slog.String("change", change))
}

// isWanted reports whether the operator's file lists a tool, or lists none.
func isWanted(s *Source, name string) bool {
	return s.o.Only == nil || slices.Contains(s.o.Only, name)
}

// pin pins the tools of this source. The caller holds mu.
func (s *Source) pin(tools []listed) error {
	pinned := map[string]listed{}
	offered := []source.Tool{}
	for _, t := range tools {
		switch {
		case !isWanted(s, t.tool.Name):
		case t.flaw != "":
			s.report(t.tool.Name, "cannot be offered: "+t.flaw)
		default:
			pinned[t.tool.Name] = t
			offered = append(offered, t.tool)
		}
	}
	var missing []string
	for _, name := range slices.Concat(s.o.Only, s.o.Named) {
		if _, ok := pinned[name]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return reason("the file names tools that it does not offer: " + strings.Join(slices.Compact(missing), ", "))
	}
	s.pinned, s.offered = pinned, offered
	return nil
}
