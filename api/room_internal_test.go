package api

import (
	"context"
	"errors"
	"testing"
)

// TestRoom bounds places and bytes, and lets answers wait until others leave.
func TestRoom(t *testing.T) {
	t.Parallel()
	r := NewRoom(10, 2, "things")
	enter := func(who string) *Place {
		t.Helper()
		p, err := r.Enter(t.Context(), who)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	first, second, other := enter("ada"), enter("ada"), enter("bob")
	if _, err := r.Enter(gone, "ada"); !errors.Is(err, context.Canceled) {
		t.Errorf("a third place: %v", err)
	}
	if err := first.Take(t.Context(), 20); err != nil {
		t.Errorf("more than the room has, alone: %v", err)
	}
	if err := other.Take(gone, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("memory of a full room: %v", err)
	}
	waited := make(chan error)
	go func() { waited <- other.Take(t.Context(), 10) }()
	go func() {
		third, err := r.Enter(t.Context(), "ada")
		if err == nil {
			third.Leave()
		}
		waited <- err
	}()
	first.Leave()
	for range 2 {
		if err := <-waited; err != nil {
			t.Errorf("after another has left: %v", err)
		}
	}
	second.Leave()
	other.Leave()
	if len(r.taken) != 0 || r.budget.used != 0 {
		t.Errorf("all have left, and %v places and %d bytes are taken", r.taken, r.budget.used)
	}
}
