package mcptool

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"fermata/engine/tools/outgoing"
)

// A probe is the first request to a server that is a command: the SDK asks it by server/discover what it
// supports. A server that does not know the method should say so, and then the SDK goes on with
// initialize. Some servers are silent instead, so after a while the guard answers for them. A nil probe never does.
type probe struct {
	wait time.Duration
	late chan jsonrpc.ID // gets the request that was not answered in time

	// These are for Read only.
	over    bool       // whether the request was answered
	givenUp jsonrpc.ID // the request that the guard has answered
	ours    *jsonrpc.Response
}

// newProbe returns a probe for which a server has some time.
func newProbe(wait time.Duration) *probe { return &probe{wait: wait, late: make(chan jsonrpc.ID, 1)} }

// begin starts the time of a request, if it is the probe.
func (p *probe) begin(r *jsonrpc.Request) {
	if p == nil || r.Method != "server/discover" {
		return
	}
	time.AfterFunc(p.wait, func() {
		select {
		case p.late <- r.ID:
		default:
		}
	})
}

// drop reports whether an answer is the one of the server to a probe that the guard has answered. It drops one.
func (p *probe) drop(m *jsonrpc.Response) bool {
	if p == nil || m == p.ours || !p.givenUp.IsValid() || m.ID != p.givenUp {
		return false
	}
	p.givenUp = jsonrpc.ID{}
	return true
}

// A received is what the connection has read.
type received struct {
	message jsonrpc.Message
	held    *outgoing.Holding // its memory, or nil
	err     error
}

// read reads the next message of the server.
func (g *guard) read(ctx context.Context) received {
	m, err := g.inner.Read(ctx)
	return received{m, g.proc.takeHeld(), err}
}

// next returns the next message of the server, or the answer to the probe if the server is silent.
func (g *guard) next(ctx context.Context) received {
	if g.pending == nil {
		if g.probe == nil || g.probe.over {
			return g.read(ctx)
		}
		g.pending = make(chan received, 1)
		go func(to chan<- received) { // until a message comes or the connection is closed
			to <- g.read(ctx)
		}(g.pending)
	}
	for {
		select {
		case r := <-g.pending:
			g.pending = nil
			if _, answer := r.message.(*jsonrpc.Response); answer {
				g.probe.over = true
			}
			return r
		case id := <-g.probe.late:
			if answer := g.giveUp(id); answer != nil {
				return received{message: answer}
			}
		}
	}
}

// giveUp returns the answer to a probe that the server has not answered.
func (g *guard) giveUp(id jsonrpc.ID) *jsonrpc.Response {
	g.mu.Lock()
	_, waits := g.waiting[id]
	g.mu.Unlock()
	if !waits || g.probe.over {
		return nil
	}
	g.probe.over, g.probe.givenUp = true, id
	g.probe.ours = &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found"}}
	return g.probe.ours
}
