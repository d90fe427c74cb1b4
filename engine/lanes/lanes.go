// Package lanes keeps calls from overlapping: in each lane of a principal one call runs at a time, in the order of
// arrival.
package lanes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Most is how many calls of one principal may wait for one lane.
const Most = 100

// errFull means that too many calls wait for a lane.
var errFull = errors.New("lanes: too many calls wait for the lane")

// The errors of calls that did not get their lane.
const (
	textFull = "the call is not made: %d calls of this principal wait for the lane %s already"
	textBusy = "the call is not made: the lane %s was busy until the time for this call was over"
	textLeft = "the call is not made: it waited for the lane %s (%w)"
)

// Lanes are all lanes. The zero value is ready for use.
type Lanes struct {
	mu sync.Mutex
	// waiting has an entry for each lane that is taken: the calls that wait for it.
	waiting map[Lane][]chan struct{}
}

// A Lane is a lane of a principal.
type Lane struct{ Principal, Name string }

// enter waits until the lane is free or ctx ends. The caller must call leave to free the lane.
func (l *Lanes) enter(ctx context.Context, lane Lane) (leave func(), err error) {
	l.mu.Lock()
	queue, busy := l.waiting[lane]
	switch {
	case !busy:
		if l.waiting == nil {
			l.waiting = map[Lane][]chan struct{}{}
		}
		l.waiting[lane] = nil
		l.mu.Unlock()
		return func() { l.leave(lane) }, nil
	case len(queue) >= Most:
		l.mu.Unlock()
		return nil, errFull
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

// Enter waits until the lane is free, but no longer than limit. The caller must call leave to free the lane. The error
// says why the call is not made.
func (l *Lanes) Enter(ctx context.Context, limit time.Duration, lane Lane) (leave func(), err error) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	leave, err = l.enter(bounded, lane)
	switch {
	case err == nil:
		return leave, nil
	case errors.Is(err, errFull):
		return nil, fmt.Errorf(textFull, Most, lane.Name)
	case ctx.Err() != nil:
		return nil, fmt.Errorf(textLeft, lane.Name, context.Cause(ctx))
	default:
		return nil, fmt.Errorf(textBusy, lane.Name)
	}
}

// forget removes a call from those that wait, and reports whether it was among them.
func (l *Lanes) forget(lane Lane, mine chan struct{}) bool {
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
func (l *Lanes) leave(lane Lane) {
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
