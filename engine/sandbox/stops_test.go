package sandbox

import (
	"testing"
	"testing/synctest"
)

// Of the answers to orders to stop, only the answer to the latest one says that the program
// stands still in this pause.
func TestStops(t *testing.T) {
	s := newStops()
	says := func(word string) bool {
		events, quit := make(chan Event, 1), make(chan struct{})
		s.offer([]byte(word), events, quit)
		return len(events) > 0
	}
	if says("") {
		t.Error("it stands still before it has paused")
	}
	s.begin()
	if says("0") {
		t.Error("it stands still before it was told to")
	}
	s.ask()
	s.ask()
	if says("1") || !says("2") {
		t.Error("not only the answer to the second stop counts")
	}
	if !says("") {
		t.Error("a supervisor that has stopped the program by itself is not believed")
	}
	s.over()
	if says("2") || says("") {
		t.Error("it stands still after it was let go")
	}
	s.begin()
	if says("2") {
		t.Error("an answer in an earlier pause counts in the next")
	}
}

// What is on its way when the program is resumed does not come any more.
func TestStoppedTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStops()
		events, offered := make(chan Event), make(chan struct{})
		s.begin()
		go func() {
			defer close(offered)
			s.offer(nil, events, nil)
		}()
		synctest.Wait()
		s.over()
		select {
		case e := <-events:
			t.Errorf("got %T after the program was resumed", e)
		case <-offered:
		}
	})
}
