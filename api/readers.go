package api

import (
	"fmt"
	"net/http"
	"sync"
)

// allReaders is how many times the limit of one principal all of them together have.
const allReaders = 5

// A ReaderObserver is told what becomes of readers. Its functions may be nil.
type ReaderObserver struct {
	// Open changes the number of readers by n.
	Open func(n int)
	// Sent counts an event, and the bytes that it took.
	Sent func(bytes int)
	// CutOff counts a reader that was too slow.
	CutOff func()
}

// Readers bound how many streams of events are open at once, for each principal and in all.
type Readers struct {
	limit    int
	observer ReaderObserver

	mu   sync.Mutex
	open map[string]int
	all  int
}

// NewReaders returns a bound of limit streams for each principal, and of five times as many for all
// of them.
func NewReaders(limit int, o ReaderObserver) *Readers {
	return &Readers{limit: limit, observer: o, open: map[string]int{}}
}

// Admit counts a stream of a principal until the returned function is called, or refuses it.
func (r *Readers) Admit(principal string) (done func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.open[principal] >= r.limit:
		return nil, tooManyReaders("You read as many streams of events as one client may: %d (FERMATA_MAX_READERS)", r.limit)
	case r.all >= allReaders*r.limit:
		return nil, tooManyReaders("All clients together read as many streams of events as they may: %d (five times FERMATA_MAX_READERS)", r.all)
	}
	r.count(principal, 1)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.count(principal, -1)
	}, nil
}

// count adds to the streams of a principal. mu is held.
func (r *Readers) count(principal string, n int) {
	r.all += n
	if r.open[principal] += n; r.open[principal] == 0 {
		delete(r.open, principal)
	}
	if r.observer.Open != nil {
		r.observer.Open(n)
	}
}

// tooManyReaders refuses a stream.
func tooManyReaders(format string, limit int) *Error {
	return &Error{Status: http.StatusTooManyRequests, Seconds: tooManyDelay, Text: fmt.Sprintf(format, limit)}
}
