package engine

import (
	"testing"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
)

// A record of before the machine was started belongs to a sandbox that ended with the machine.
func TestLossOf(t *testing.T) {
	booted, known := bootTime()
	if !known || time.Since(booted) < 0 {
		t.Fatalf("this machine was started at %v (%t)", booted, known)
	}
	for want, since := range map[string]time.Time{
		journal.MachineRestarted: booted.Add(-time.Hour),
		core.SandboxEnded:        time.Now(),
	} {
		if got := lossOf(continuation.Record{Since: since}); got != want {
			t.Errorf("a record of %v: %q, want %q", since, got, want)
		}
	}
}
