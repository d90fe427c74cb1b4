package api

import (
	"testing"
	"time"
)

// A full server tells when it may have room again, within bounds.
func TestRetryAfterOfAFullServer(t *testing.T) {
	for room, want := range map[time.Duration]int{
		0: 2, time.Second: 2, 2500 * time.Millisecond: 3, 100 * time.Second: 100, time.Hour: 300,
	} {
		if got := noSandbox(room).Seconds; got != want {
			t.Errorf("with room in %v a client waits %d s, want %d", room, got, want)
		}
	}
}
