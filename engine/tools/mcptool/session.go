package mcptool

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/engine/tools/outgoing"
)

// A session is a connection to an MCP server on behalf of one principal.
type session struct {
	times *times
	mcp   *mcp.ClientSession
	guard *guard
	proc  *process // nil over HTTP
	hold  func() *outgoing.Holding
	began time.Time
	first []listed      // the tools as they were listed when it began
	over  chan struct{} // closed when no call begins any more

	evicted chan struct{} // closed when the process ends to make room for another

	listing sync.Mutex // held while the tools are listed again

	mu     sync.Mutex
	calls  int
	used   time.Time         // when the last call ended
	asked  time.Time         // when the tools were listed
	hidden map[string]string // tools that are not called in this session, and why
}

// open connects to the server of the options, and lists its tools.
func open(ctx context.Context, o *Options, principal string) (s *session, err error) {
	g := &guard{patient: o.times.write, waiting: map[jsonrpc.ID]waiting{}}
	s = &session{times: o.times, guard: g, began: time.Now(), used: time.Now(), over: make(chan struct{}), evicted: make(chan struct{}), hidden: map[string]string{}}
	s.hold = func() *outgoing.Holding { return o.Budget.Hold(principal) }
	if o.URL != "" {
		if g.inner, err = connectWeb(ctx, o, principal, g); err != nil {
			return nil, err
		}
	} else {
		if s.proc, err = startProcess(o, s.hold); err != nil {
			return nil, err
		}
		g.inner, g.proc, g.probe = s.proc, s.proc, newProbe(min(o.times.probe, o.times.start/2))
	}
	defer func() {
		if err != nil {
			late := errors.Is(ctx.Err(), context.DeadlineExceeded) // Then the process has ended because it was late.
			err = g.reason(err)
			if late {
				err = errors.Join(lateReason(o.times.start), err)
			}
			s.close()
			if s.proc != nil {
				err = errors.Join(s.proc.tell(reasonOf(err)), err)
			}
			s = nil
		}
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "fermata", Version: o.Version}, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{}, // none
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	ctx, x := withExchange(ctx, s.hold())
	defer x.end()
	if s.mcp, err = client.Connect(ctx, g, nil); err != nil {
		if status := x.status.Load(); status != 0 {
			err = errors.Join(statusReason(status), err)
		}
		return s, err
	}
	if s.first, err = list(ctx, s); err != nil {
		return s, err
	}
	s.asked, s.used = time.Now(), time.Now()
	return s, nil
}

// wait returns when the session has ended: by itself, because it was idle for too long, to make
// room for another, or with ctx.
// After that no call begins in it. It must still be closed.
func (s *session) wait(ctx context.Context) {
	gone := make(chan struct{})
	go func() { // until close
		defer close(gone)
		_ = s.mcp.Wait() // The error is ignored, since the guard knows why the session has ended.
	}()
	tick := time.NewTicker(max(s.times.idle/4, time.Millisecond))
	defer tick.Stop()
	for alive := true; alive; {
		select {
		case <-gone:
			alive = false
		case <-ctx.Done():
			alive = false
		case <-s.evicted:
			alive = false
		case <-tick.C:
			alive = !s.expire(s.times.idle)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = -1
	close(s.over)
}

// idle returns when a session without calls was last used. Whoever has just opened it has the time to use it.
func (s *session) idle() (used time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.calls == 0 && time.Since(s.used) > 50*time.Millisecond
}

// expire ends a session that has not been used for so long, and tells whether it has.
func (s *session) expire(unused time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls != 0 || time.Since(s.used) < unused {
		return false
	}
	s.calls = -1
	return true
}

// begin counts a call, unless the session has ended.
func (s *session) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls < 0 {
		return false
	}
	s.calls++
	return true
}

// finish notes the end of a call.
func (s *session) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls > 0 {
		s.calls--
	}
	s.used = time.Now()
}

// close ends the connection, and the process with its whole group. Calls that wait for answers fail.
func (s *session) close() {
	if s.proc != nil {
		_ = s.proc.Close()
		<-s.proc.done
	}
	if s.mcp != nil {
		_ = s.mcp.Close() // Over HTTP this tells the server that the session has ended.
	} else if s.guard.inner != nil {
		_ = s.guard.inner.Close()
	}
}
