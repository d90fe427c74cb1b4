package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"fermata/engine/core"
	"fermata/engine/sandbox"
)

// An execution is one run of one program, on this server, as requests see it. The program, its record and its requests
// are in the hands of one goroutine, that of a life: ask has something done there.
type execution struct {
	id        string
	principal string
	session   string
	sandbox   *sandbox.Conn
	// conversation has the record of the execution and the answers to its requests. It is the goroutine's, but for
	// what the ledger leaves to others.
	conversation *conversation
	asks         chan func()
	// ended is closed when the goroutine has ended, and the execution cannot be found any more.
	ended chan struct{}
	switches
	// requestID is the client's id of the latest request.
	requestID atomic.Pointer[string]
	// pausedUntil is when the present pause expires at the latest, nil outside pauses.
	pausedUntil atomic.Pointer[time.Time]
}

func newExecution(c *conversation, sb *sandbox.Conn) *execution {
	return &execution{
		id: c.record.ID, principal: c.record.Principal, session: c.record.Session, sandbox: sb, conversation: c,
		asks: make(chan func()), ended: make(chan struct{}), switches: c.switches,
	}
}

// errEnded means that an execution has ended meanwhile: its record tells how.
var errEnded = fmt.Errorf("%w: it has just ended", ErrOwnerAway)

// ask has do done in the goroutine of the execution, while nothing else changes there, and waits for that.
func (x *execution) ask(ctx context.Context, do func()) error {
	done := make(chan struct{})
	select {
	case x.asks <- func() { defer close(done); do() }:
		<-done
		return nil
	case <-x.ended:
		return errEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// part leaves a paused execution to a later server. It reports false if the execution is not
// paused, or the pause is not recorded.
func (x *execution) part() (parted bool) {
	c := x.conversation
	err := x.ask(context.Background(), func() {
		if parted = c.standing == core.StandsPaused; parted {
			c.lose()
			c.o.logKept(c.record)
		}
	})
	return parted && err == nil
}
