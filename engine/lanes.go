package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// maxLane is how many calls of one principal may wait for one lane.
const maxLane = 100

// errLaneFull means that too many calls wait for a lane.
var errLaneFull = errors.New("engine: too many calls wait for the lane")

// The errors of calls that did not get their lane.
const (
	textLaneFull = "the call is not made: %d calls of this principal wait for the lane %s already"
	textLaneBusy = "the call is not made: the lane %s was busy until the time for this call was over"
	textLaneLeft = "the call is not made: it waited for the lane %s (%w)"
)

// lanes keep calls from overlapping: in each lane of a principal one call runs at a time, in the order of
// arrival.
type lanes struct {
	mu sync.Mutex
	// waiting has an entry for each lane that is taken: the calls that wait for it.
	waiting map[laneOf][]chan struct{}
}

// A laneOf identifies a lane.
type laneOf struct{ principal, lane string }

// enter waits until the lane is free or ctx ends. The caller must call leave to free the lane.
func (l *lanes) enter(ctx context.Context, lane laneOf) (leave func(), err error) {
	l.mu.Lock()
	queue, busy := l.waiting[lane]
	switch {
	case !busy:
		if l.waiting == nil {
			l.waiting = map[laneOf][]chan struct{}{}
		}
		l.waiting[lane] = nil
		l.mu.Unlock()
		return func() { l.leave(lane) }, nil
	case len(queue) >= maxLane:
		l.mu.Unlock()
		return nil, errLaneFull
	}
	mine := make(chan struct{})
	l.waiting[lane] = append(queue, mine)
	l.mu.Unlock()
	select {
	case <-mine:
		return func() { l.leave(lane) }, nil
	case <-ctx.Done():
	}
	if !l.forget(lane, mine) { // The call has got the lane at the same moment.
		l.leave(lane)
	}
	return nil, context.Cause(ctx)
}

// enterWithin is like enter, but waits no longer than limit. The error says why the call is not made.
func (l *lanes) enterWithin(ctx context.Context, limit time.Duration, lane laneOf) (leave func(), err error) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	leave, err = l.enter(bounded, lane)
	switch {
	case err == nil:
		return leave, nil
	case errors.Is(err, errLaneFull):
		return nil, fmt.Errorf(textLaneFull, maxLane, lane.lane)
	case ctx.Err() != nil:
		return nil, fmt.Errorf(textLaneLeft, lane.lane, context.Cause(ctx))
	default:
		return nil, fmt.Errorf(textLaneBusy, lane.lane)
	}
}

// forget removes a call from those that wait, and reports whether it was among them.
func (l *lanes) forget(lane laneOf, mine chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting[lane], mine)
	if i < 0 {
		return false
	}
	l.waiting[lane] = slices.Delete(l.waiting[lane], i, i+1)
	return true
}

// leave gives the lane to the call that has waited longest.
func (l *lanes) leave(lane laneOf) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.waiting[lane]
	if len(queue) == 0 {
		delete(l.waiting, lane)
		return
	}
	close(queue[0])
	l.waiting[lane] = queue[1:]
}
