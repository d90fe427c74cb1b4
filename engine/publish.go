package engine

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// publishAfter is how long the first event of an execution may wait for a write to the store.
	publishAfter = 50 * time.Millisecond
	// publishOutput is how long output waits for a write to the store: long enough for the calls
	// that often follow it, whose pause is written together with it.
	publishOutput = time.Millisecond
	// saveRetry is the time between two attempts to write what the store did not accept.
	saveRetry = time.Second
)

// A publisher writes in the background what a journal has noted, while the execution stays in its
// state.
type publisher struct {
	// write writes once.
	write func() error
	// lost is closed when this server loses the execution, over when the execution has ended here.
	lost <-chan struct{}
	over chan struct{}
	// due is true while a goroutine is about to write. writing waits for it.
	due     atomic.Bool
	writing sync.WaitGroup
}

func newPublisher(write func() error, lost <-chan struct{}) *publisher {
	return &publisher{write: write, lost: lost, over: make(chan struct{})}
}

// publish has everything written that is noted by now, and does not wait for that. If the store is
// away, the publisher tries again until it succeeds.
func (p *publisher) publish() {
	if !p.due.CompareAndSwap(false, true) {
		return
	}
	p.writing.Go(func() {
		retry := time.NewTicker(saveRetry)
		defer retry.Stop()
		for {
			// From here on, whatever is noted may be too late for this write.
			p.due.Store(false)
			if p.write() == nil || !p.due.CompareAndSwap(false, true) {
				return
			}
			select {
			case <-retry.C:
			case <-p.lost:
				return
			case <-p.over:
				return
			}
		}
	})
}

// end waits for the write that is under way, and ends. publish must not be called any more.
func (p *publisher) end() {
	close(p.over)
	p.writing.Wait()
}
