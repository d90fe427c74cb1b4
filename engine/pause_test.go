package engine

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"
)

// A pause costs a program the time until it has stopped, but not what its server needed
// before it told it to.
func TestMeter(t *testing.T) {
	began := time.Now()
	for _, c := range []struct {
		name       string
		asked, end time.Duration // since the program came to rest; 0 is never
		want       time.Duration
	}{
		{"an answer at once", 0, 3 * time.Millisecond, 3 * time.Millisecond},
		{"an answer when the server was slow", 0, 5 * time.Second, stopAfter},
		{"stopped", stopAfter, stopAfter + 2*time.Millisecond, stopAfter + 2*time.Millisecond},
		{"stopped by a slow server", 5 * time.Second, 5*time.Second + time.Millisecond, stopAfter + time.Millisecond},
		{"not to be stopped", stopAfter, time.Minute, time.Minute},
	} {
		m := meter{began: began}
		if c.asked != 0 {
			m.asked = began.Add(c.asked)
		}
		if got := m.stop(began.Add(c.end)); got != c.want {
			t.Errorf("%s: it counts %v, want %v", c.name, got, c.want)
		}
		if got := m.stop(began.Add(time.Hour)); got != 0 {
			t.Errorf("%s: what was counted is counted again as %v", c.name, got)
		}
	}
}

// Of the answers to orders to stop, only the answer to the latest one says that the program
// stands still in this pause.
func TestStill(t *testing.T) {
	ours, theirs := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, bufio.NewReader(theirs)) }()
	defer func() { _ = ours.Close() }()
	s := &sandbox{stream: ours}
	says := func(payload string) bool { return s.still(frame{kind: frameStopped, payload: []byte(payload)}) }
	if says("0") {
		t.Error("it stands still before it was told to")
	}
	for range 2 {
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
	}
	if says("1") || !says("2") {
		t.Error("not only the answer to the second stop counts")
	}
	if !says("") {
		t.Error("a supervisor that has stopped the program by itself is not believed")
	}
	s.stopped = false
	if says("2") {
		t.Error("it stands still after it was let go")
	}
}
