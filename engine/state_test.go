package engine

import (
	"testing"

	"fermata/continuation"
)

var allStates = []State{Running, Paused, Completed, Failed, TimedOut, Cancelled, Expired}

func TestMove(t *testing.T) {
	type pair struct{ from, to State }
	legal := map[pair]bool{
		{Running, Paused}:    true,
		{Running, Completed}: true,
		{Running, Failed}:    true,
		{Running, TimedOut}:  true,
		{Running, Cancelled}: true,
		{Paused, Running}:    true,
		{Paused, Cancelled}:  true,
		{Paused, Expired}:    true,
		{Paused, TimedOut}:   true,
	}
	states := append([]State{"", "unknown"}, allStates...)
	for _, from := range states {
		for _, to := range states {
			before := continuation.Record{ID: "x", State: string(from), Version: 7, Round: 3}
			want := before
			if legal[pair{from, to}] {
				want.State, want.Version = string(to), 8
				if to == Paused {
					want.Round = 4
				}
			}
			got, err := move(before, to)
			if (err == nil) != legal[pair{from, to}] {
				t.Errorf("move from %q to %q = %v, want legal: %v", from, to, err, legal[pair{from, to}])
			}
			if got.State != want.State || got.Version != want.Version || got.Round != want.Round {
				t.Errorf("move from %q to %q made state %q, version %d, round %d; want %q, %d, %d",
					from, to, got.State, got.Version, got.Round, want.State, want.Version, want.Round)
			}
		}
	}
}

func TestTerminal(t *testing.T) {
	for _, s := range allStates {
		if got, want := s.terminal(), s != Running && s != Paused; got != want {
			t.Errorf("%q.terminal() = %v, want %v", s, got, want)
		}
	}
}
