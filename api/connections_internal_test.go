package api

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
)

// A fakeConn notes whether it was closed.
type fakeConn struct {
	net.Conn
	closed bool
}

func (c *fakeConn) Close() error {
	c.closed = true
	return nil
}

// fakes are connections without a server, in the order in which they were opened.
type fakes struct {
	of    *Connections
	conns []*fakeConn
	ctxs  []context.Context
}

func (f *fakes) open(t *testing.T) {
	conn := new(fakeConn)
	f.conns = append(f.conns, conn)
	f.ctxs = append(f.ctxs, f.of.opened(t.Context(), conn))
}

// closed checks which connections were closed.
func (f *fakes) closed(t *testing.T, want ...int) {
	t.Helper()
	var got []int
	for i, c := range f.conns {
		if c.closed {
			got = append(got, i)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v were closed, want %v", got, want)
	}
}

func TestConnections(t *testing.T) {
	pushed := 0
	f := &fakes{of: NewConnections(4, func() { pushed++ })}
	for range 4 {
		f.open(t)
	}
	f.closed(t)
	leave := Occupy(f.ctxs[0], "ada")
	f.open(t)
	f.closed(t, 1) // The oldest connection works for a principal.
	leave()
	f.open(t)
	f.closed(t, 1, 2)
	leave = Occupy(f.ctxs[3], "ada")
	f.open(t)
	f.closed(t, 1, 2, 4) // The oldest connection has waited since its request was over.
	leave()
	f.of.changed(f.conns[0], http.StateClosed)
	f.of.changed(f.conns[0], http.StateClosed)
	f.open(t)
	f.closed(t, 1, 2, 4) // There was room.
	f.of.changed(f.conns[5], http.StateIdle)
	f.open(t)
	f.closed(t, 1, 2, 4, 5)
	if pushed != 4 || len(f.of.open) != 4 || f.of.waiting.Len() != 4 || len(f.of.serving) != 0 {
		t.Errorf("%d were pushed out, %d are open, %d wait, %v work; want 4, 4, 4, none", pushed, len(f.of.open), f.of.waiting.Len(), f.of.serving)
	}
}

func TestNoConnectionWaits(t *testing.T) {
	f := &fakes{of: NewConnections(2, func() {})}
	f.open(t)
	f.open(t)
	leaveAda, leaveBob := Occupy(f.ctxs[0], "ada"), Occupy(f.ctxs[1], "bob")
	f.open(t)
	f.closed(t, 2) // This is the new connection.
	Occupy(f.ctxs[2], "eve")()
	leaveAda()
	f.open(t)
	f.closed(t, 0, 2)
	f.of.changed(f.conns[1], http.StateClosed)
	leaveBob() // Bob's connection has gone.
	f.of.changed(f.conns[3], http.StateClosed)
	if len(f.of.open) != 0 || f.of.waiting.Len() != 0 || len(f.of.serving) != 0 {
		t.Errorf("%d are open, %d wait, %v work; want none", len(f.of.open), f.of.waiting.Len(), f.of.serving)
	}
}

// The requests of one principal do not keep all others out.
func TestShareOfConnections(t *testing.T) {
	f := &fakes{of: NewConnections(4, func() {})}
	for i := range 4 {
		f.open(t)
		defer Occupy(f.ctxs[i], "ada")()
	}
	f.open(t)
	f.closed(t, 2)
	// A request without a connection of the server.
	if done := Occupy(t.Context(), "ada"); done == nil {
		t.Error("there is nothing to call")
	}
}
