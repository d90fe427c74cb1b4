package api

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// Connections bound how many connections a server has at once. When there is one too many,
// the connection that has waited longest is closed. A connection waits while it has no
// request of a known principal under way, so that clients without a key cannot keep out
// those with one.
type Connections struct {
	limit, share int
	pushedOut    func()

	mu   sync.Mutex
	open map[net.Conn]*connection
	// waiting are the connections that wait, the longest-waiting one in front.
	waiting list.List
	// serving counts connections with a request under way, by principal.
	serving map[string]int
}

// A connection is an open connection.
type connection struct {
	of   *Connections
	conn net.Conn
	// place is its element of waiting, nil while it does not wait.
	place *list.Element
	// closed is true if the connection does not count any more.
	closed bool
}

// NewConnections returns a bound of limit connections. At most half of them can be busy
// with the requests of one principal; beyond that its connections count as waiting.
// pushedOut is called for each connection that is closed to stay within limit.
func NewConnections(limit int, pushedOut func()) *Connections {
	return &Connections{
		limit: limit, share: max(1, limit/2), pushedOut: pushedOut,
		open: map[net.Conn]*connection{}, serving: map[string]int{},
	}
}

// Bound counts the connections of server from now on.
func (c *Connections) Bound(server *http.Server) {
	server.ConnContext = c.opened
	server.ConnState = c.changed
}

type connectionKey struct{}

// opened counts a new connection. If there are too many, it closes the connection that has waited
// longest, or the new one if none waits. It serves as the ConnContext of an http.Server.
func (c *Connections) opened(ctx context.Context, conn net.Conn) context.Context {
	c.mu.Lock()
	added := &connection{of: c, conn: conn}
	var out *connection
	if len(c.open) >= c.limit {
		if out = added; c.waiting.Len() > 0 {
			out, _ = c.waiting.Front().Value.(*connection)
			c.forget(out)
		}
	}
	if out != added {
		c.open[conn] = added
		added.place = c.waiting.PushBack(added)
	} else {
		added.closed = true
	}
	c.mu.Unlock()
	if out != nil {
		// To the http.Server this looks as if the client had left.
		_ = out.conn.Close()
		c.pushedOut()
	}
	return context.WithValue(ctx, connectionKey{}, added)
}

// changed notes that a connection has ended. It serves as the ConnState of an http.Server.
func (c *Connections) changed(conn net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.open[conn]; known != nil {
		c.forget(known)
	}
}

// forget stops counting a connection. mu is held.
func (c *Connections) forget(known *connection) {
	known.closed = true
	delete(c.open, known.conn)
	if known.place != nil {
		c.waiting.Remove(known.place)
		known.place = nil
	}
}

// Occupy notes that the connection of the request with this context works for a principal,
// until the returned function is called.
func Occupy(ctx context.Context, principal string) (done func()) {
	if known, ok := ctx.Value(connectionKey{}).(*connection); ok {
		return known.of.occupy(known, principal)
	}
	return func() {}
}

func (c *Connections) occupy(known *connection, principal string) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known.place == nil || c.serving[principal] >= c.share {
		return func() {}
	}
	c.waiting.Remove(known.place)
	known.place = nil
	c.serving[principal]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.serving[principal]--; c.serving[principal] == 0 {
			delete(c.serving, principal)
		}
		if !known.closed {
			known.place = c.waiting.PushBack(known)
		}
	}
}
