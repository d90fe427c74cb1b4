package mcptool

import (
	"context"
	"sync"
	"time"
)

// Limits count the sessions of each principal, and the processes of all, over all sources that have
// them.
type Limits struct {
	most     int           // processes
	starting chan struct{} // has an element for each process that starts

	mu       sync.Mutex
	sessions map[string]int      // by principal
	held     map[string]int      // processes by principal
	all      int                 // processes
	settled  map[*session]string // sessions with processes that have started, and their principals
}

// NewLimits returns limits without sessions, for so many processes.
func NewLimits(processes int) *Limits {
	return &Limits{most: processes, starting: make(chan struct{}, maxStarting), sessions: map[string]int{}, held: map[string]int{}, settled: map[*session]string{}}
}

// take counts a session. A session that all principals share does not count for any of them.
func (l *Limits) take(principal string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case principal == "":
	case l.sessions[principal] >= MaxSessions:
		return errManySessions
	default:
		l.sessions[principal]++
	}
	return nil
}

// give ends the counting of a session.
func (l *Limits) give(principal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	less(l.sessions, principal)
}

// less counts one less, and forgets who has none.
func less(counts map[string]int, principal string) {
	if counts[principal]--; counts[principal] <= 0 {
		delete(counts, principal)
	}
}

// enter takes a place for a process, for which an idle process may have to end. It waits for no longer than patience.
func (l *Limits) enter(ctx context.Context, principal string, patience time.Duration) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for ending := (*session)(nil); ; {
		if l.place(principal, &ending) {
			return nil
		}
		select {
		case <-again.C:
		case <-late.C:
			return errManyProcesses
		case <-ctx.Done():
			return errClosed
		}
	}
}

// place takes a place for a process if there is one. If there is none, it ends an idle process, unless the one
// that it has ended before still has its place.
func (l *Limits) place(principal string, ending **session) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all < l.most {
		l.all++
		l.held[principal]++
		return true
	}
	if _, found := l.settled[*ending]; !found {
		*ending = l.makeRoom(principal)
	}
	return false
}

// makeRoom ends the process that has been idle longest, of the principal with the most idle ones, and returns
// its session, or nil if there is none. A principal takes no place from another one that has fewer than it has. The
// caller holds mu.
func (l *Limits) makeRoom(principal string) *session {
	idle := map[string]int{}
	since := map[*session]time.Time{}
	for sn, owner := range l.settled {
		if used, ok := sn.idle(); ok && (owner == principal || owner == "" || l.held[owner] >= l.held[principal]) {
			idle[owner]++
			since[sn] = used
		}
	}
	var best *session
	for sn, used := range since {
		more := 0
		if best != nil {
			more = idle[l.settled[sn]] - idle[l.settled[best]]
		}
		if best == nil || more > 0 || more == 0 && used.Before(since[best]) {
			best = sn
		}
	}
	if best == nil || !best.expire(0) {
		return nil
	}
	close(best.evicted)
	return best
}

// settle notes that the process of a principal has started, and may end for another when it is idle.
func (l *Limits) settle(sn *session, principal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled[sn] = principal
}

// leave gives the place of a process back when nothing is left of the process. sn is nil if it has not started.
func (l *Limits) leave(sn *session, principal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.settled, sn)
	l.all--
	less(l.held, principal)
}
