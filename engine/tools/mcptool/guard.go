package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/engine/tools/outgoing"
)

// An exchange is what is known about a request: whether the server may have got it, and the bytes of its
// answer, which the SDK does not keep.
type exchange struct {
	sent   atomic.Bool
	status atomic.Int32 // The HTTP status of an answer that does not report success, or 0.
	answer atomic.Pointer[jsonrpc.Response]

	held    *outgoing.Holding // the memory of the answer while it is read over HTTP
	refused atomic.Bool       // whether there was not enough memory for the answer

	mu   sync.Mutex
	line *outgoing.Holding // the memory of the answer of a process
	over bool
}

// grow takes memory for an answer that is read over HTTP, until it has so many bytes. It reports false if there is
// not enough.
func (x *exchange) grow(bytes int64) bool {
	ok := x.held.Grow(bytes)
	if !ok {
		x.refused.Store(true)
	}
	return ok
}

// keep takes over the memory of an answer until the end of the exchange. An exchange may have several requests, and has
// the memory of the latest answer.
func (x *exchange) keep(line *outgoing.Holding) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		line.Release()
		return
	}
	x.line.Release()
	x.line = line
}

// end gives the memory of the answer back.
func (x *exchange) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	x.held.Release()
	x.line.Release()
}

type exchangeKey struct{}

// withExchange returns a context for a request, and the exchange that will describe the request. It must be ended.
func withExchange(ctx context.Context, held *outgoing.Holding) (context.Context, *exchange) {
	x := &exchange{held: held}
	return context.WithValue(ctx, exchangeKey{}, x), x
}

// exchangeOf returns the exchange of a request. If withExchange was not called, it is one that nobody reads.
func exchangeOf(ctx context.Context) *exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{over: true}
}

// A waiting request has been sent and not been answered.
type waiting struct {
	method string
	x      *exchange
}

// A guard is between a connection and the SDK. It passes on only answers to requests that were made. Any
// other message ends the connection, is answered here, or is dropped.
type guard struct {
	inner   mcp.Connection
	proc    *process      // the same, or nil over HTTP
	patient time.Duration // for answers to requests of the server
	probe   *probe        // or nil
	pending chan received // gets the message for which a former call of Read waits, if there is one

	version atomic.Value // string: the version of the protocol
	changed atomic.Bool  // whether the server has said that its tools have changed

	mu      sync.Mutex
	waiting map[jsonrpc.ID]waiting
	second  time.Time // when the present second began
	heard   int       // notifications and requests within it
	why     error     // the first thing that the server did wrong
}

// Connect implements mcp.Transport: the guard is the connection.
func (g *guard) Connect(context.Context) (mcp.Connection, error) { return g, nil }

// SessionID implements mcp.Connection.
func (g *guard) SessionID() string { return g.inner.SessionID() }

// Close implements mcp.Connection.
func (g *guard) Close() error { return g.inner.Close() }

// Write implements mcp.Connection.
func (g *guard) Write(ctx context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		g.mu.Lock()
		if len(g.waiting) >= maxWaiting {
			g.mu.Unlock()
			return g.fail(errManyWaiting)
		}
		g.waiting[r.ID] = waiting{r.Method, exchangeOf(ctx)}
		g.mu.Unlock()
		g.probe.begin(r)
	}
	if err := g.inner.Write(ctx, m); err != nil {
		return g.note(err)
	}
	return nil
}

// Read implements mcp.Connection.
func (g *guard) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		r := g.next(ctx)
		if r.err != nil {
			r.held.Release()
			return nil, g.note(r.err)
		}
		switch m := r.message.(type) {
		case *jsonrpc.Response:
			if g.probe.drop(m) {
				r.held.Release()
				continue
			}
			if err := g.accept(m, r.held); err != nil {
				return nil, err
			}
			return m, nil
		case *jsonrpc.Request:
			r.held.Release()
			if err := g.hear(ctx, m); err != nil {
				return nil, err
			}
		}
	}
}

// accept takes an answer, with the memory that it has.
func (g *guard) accept(m *jsonrpc.Response, held *outgoing.Holding) error {
	g.mu.Lock()
	w, ok := g.waiting[m.ID]
	delete(g.waiting, m.ID)
	g.mu.Unlock()
	if !ok {
		held.Release()
		return g.fail(errUnasked)
	}
	w.x.keep(held)
	var told *jsonrpc.Error
	if m.Error != nil && !errors.As(m.Error, &told) {
		return nil // The SDK says by this that there will be no answer.
	}
	if w.method == "initialize" {
		var r struct {
			Version string `json:"protocolVersion"`
		}
		if json.Unmarshal(m.Result, &r) == nil {
			g.version.Store(r.Version)
		}
	}
	w.x.answer.Store(m)
	return nil
}

// hear handles a notification or a request of the MCP server. Fermata offers nothing for which an MCP server
// could ask.
func (g *guard) hear(ctx context.Context, m *jsonrpc.Request) error {
	g.mu.Lock()
	if now := time.Now(); now.Sub(g.second) >= time.Second {
		g.second, g.heard = now, 0
	}
	g.heard++
	tooMany := g.heard > MaxNotifications
	g.mu.Unlock()
	if tooMany {
		return g.fail(errFlood)
	}
	if !m.IsCall() {
		if m.Method == "notifications/tools/list_changed" {
			g.changed.Store(true)
		}
		return nil
	}
	answer := &jsonrpc.Response{ID: m.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found"}}
	if m.Method == "ping" {
		answer = &jsonrpc.Response{ID: m.ID, Result: json.RawMessage("{}")}
	}
	ctx, cancel := context.WithTimeout(ctx, g.patient)
	defer cancel()
	if err := g.inner.Write(ctx, answer); err != nil {
		return g.note(err)
	}
	return nil
}

// fail ends the connection because of what the server did wrong.
func (g *guard) fail(r reason) error {
	_ = g.inner.Close()
	return g.note(r)
}

// note keeps the first reason for which the connection has ended.
func (g *guard) note(err error) error {
	if r, ok := errors.AsType[reason](err); ok {
		g.mu.Lock()
		if g.why == nil {
			g.why = r
		}
		g.mu.Unlock()
	}
	return err
}

// reason returns why the connection has ended if the transport knows it, or else err.
func (g *guard) reason(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.why != nil {
		return errors.Join(g.why, err)
	}
	return err
}
