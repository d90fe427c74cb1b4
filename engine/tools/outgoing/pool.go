package outgoing

import (
	"errors"
	"slices"
	"sync"
	"time"
)

var errClosed = errors.New("client is closed")

// pool has the connections of a client. A principal gets only connections that it has used before.
type pool struct {
	mu     sync.Mutex
	all    map[*conn]bool
	kept   map[string][]*conn // by principal; the connection that was used last is the last one
	count  int                // the number of kept connections
	closed bool
}

// add adds a fresh connection.
func (p *pool) add(c *conn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errClosed
	}
	p.all[c] = true
	return nil
}

// remove forgets a connection.
func (p *pool) remove(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, c)
	if i := slices.Index(p.kept[c.principal], c); i >= 0 {
		p.drop(c.principal, i)
	}
}

// drop removes a connection from the kept ones.
func (p *pool) drop(principal string, i int) {
	list := slices.Delete(p.kept[principal], i, i+1)
	p.kept[principal] = list
	if len(list) == 0 {
		delete(p.kept, principal)
	}
	p.count--
}

// take returns the connection that the principal has used last, among those that can be used again, or nil.
func (p *pool) take(principal string) *conn {
	for {
		p.mu.Lock()
		list := p.kept[principal]
		if len(list) == 0 {
			p.mu.Unlock()
			return nil
		}
		c := list[len(list)-1]
		p.drop(principal, len(list)-1)
		p.mu.Unlock()
		c.expiry.Stop()
		if c.quiet() {
			return c
		}
		c.close()
	}
}

// put keeps a connection for the next request of its principal. If there are too many kept connections, it
// closes one of the principal that has the most.
func (p *pool) put(c *conn) {
	p.mu.Lock()
	if p.closed || len(p.kept[c.principal]) >= maxKeptPrincipal {
		p.mu.Unlock()
		c.close()
		return
	}
	var old *conn
	if p.count >= maxKept {
		most := c.principal
		for principal, list := range p.kept {
			if len(list) > len(p.kept[most]) {
				most = principal
			}
		}
		if len(p.kept[most]) > 0 {
			old = p.kept[most][0]
			p.drop(most, 0)
		}
	}
	p.kept[c.principal] = append(p.kept[c.principal], c)
	p.count++
	c.expiry = time.AfterFunc(keptFor, c.expire)
	p.mu.Unlock()
	if old != nil {
		old.expiry.Stop()
		old.close()
	}
}

// expire closes a connection that was kept for too long, unless it was taken at the same moment.
func (c *conn) expire() {
	p := c.pool
	p.mu.Lock()
	i := slices.Index(p.kept[c.principal], c)
	if i >= 0 {
		p.drop(c.principal, i)
	}
	p.mu.Unlock()
	if i >= 0 {
		c.close()
	}
}

// close closes all connections, for good.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	all := p.all
	kept := p.kept
	p.all, p.kept, p.count = map[*conn]bool{}, map[string][]*conn{}, 0
	p.mu.Unlock()
	for _, list := range kept {
		for _, c := range list {
			c.expiry.Stop()
		}
	}
	for c := range all {
		c.close()
	}
}
