package engine

import (
	"context"
	"errors"
)

// A segment is one stretch of running, from a request to the pause or the end that
// answers it.
type segment struct {
	// round is the round whose token began it, 0 for the start.
	round int
	// request is the hash of the request that began it.
	request string
	// done is closed when outcome and err are set.
	done    chan struct{}
	outcome Outcome
	err     error
}

func newSegment(round int, request string) *segment {
	return &segment{round: round, request: request, done: make(chan struct{})}
}

// answered is a segment that is over.
func answered(round int, request string, outcome Outcome, err error) *segment {
	s := newSegment(round, request)
	s.finish(outcome, err)
	return s
}

// finish answers the request. It is called once.
func (s *segment) finish(outcome Outcome, err error) {
	s.outcome, s.err = outcome, err
	close(s.done)
}

// await waits for the answer. When the request is cancelled, and not only given up by its
// client, await calls cancel and returns the answer that comes of it.
func (s *segment) await(ctx context.Context, cancel func()) (Outcome, error) {
	select {
	case <-s.done:
		return s.outcome, s.err
	case <-ctx.Done():
	}
	if err := context.Cause(ctx); !errors.Is(err, errCancelled) {
		return Outcome{}, err
	}
	cancel()
	<-s.done
	return s.outcome, s.err
}
