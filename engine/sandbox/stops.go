package sandbox

import (
	"strconv"
	"sync"
	"sync/atomic"
)

// stops tells which of a supervisor's words that the program has stopped is about the present
// pause. One about an earlier pause, or one that is on its way when the program is resumed,
// is dropped: whoever receives a Stopped can rely on it.
type stops struct {
	// asked is the number of the latest order to stop.
	asked atomic.Int64

	mu sync.Mutex
	// paused says that the program waits for results, since the number of the latest order
	// before this pause.
	paused bool
	since  int64
	// resumed is closed when the program is resumed. Only over replaces it.
	resumed chan struct{}
}

func newStops() *stops { return &stops{resumed: make(chan struct{})} }

// ask returns the number of the next order to stop.
func (s *stops) ask() int64 { return s.asked.Add(1) }

// begin notes that the program has paused.
func (s *stops) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = true
}

// over notes that the program is resumed. When it returns nothing about the pause is offered
// any more.
func (s *stops) over() {
	close(s.resumed) // An offer holds mu.
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused, s.since, s.resumed = false, s.asked.Load(), make(chan struct{})
}

// offer hands a Stopped to whoever receives events, if the supervisor's word is about the
// present pause: it answers the latest order, whose number it repeats, or it has no number,
// which says that the supervisor has stopped the program by itself.
func (s *stops) offer(word []byte, events chan<- Event, quit <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	latest := s.asked.Load()
	if !s.paused || len(word) > 0 && (latest == s.since || string(word) != strconv.FormatInt(latest, 10)) {
		return
	}
	select {
	case events <- Stopped{}:
	case <-s.resumed:
	case <-quit:
	}
}
