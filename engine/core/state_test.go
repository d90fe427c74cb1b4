package core

import (
	"slices"
	"testing"
	"time"

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
			got, err := Move(before, to, time.Now())
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
		if got, want := s.Terminal(), s != Running && s != Paused; got != want {
			t.Errorf("%q.terminal() = %v, want %v", s, got, want)
		}
	}
}

// The table of standings agrees with the table of moves: a record that moves to a state stands
// where the table allows that state, and allows accepts the moves of the table and no others.
func TestStandings(t *testing.T) {
	for from, row := range standings {
		for _, to := range row.next {
			if _, known := standings[to]; !known {
				t.Errorf("%q leads to %q, which is no standing", from, to)
			}
		}
		for _, state := range row.states {
			for _, to := range moves[state] {
				for _, saved := range []bool{true, false} {
					next := StandingIn(to, saved)
					if !slices.Contains(standings[next].states, to) {
						t.Errorf("a record that is %q stands at %q, whose states are %q", to, next, standings[next].states)
					}
					err := from.Allows(next)
					if legal := slices.Contains(row.next, next); (err == nil) != legal {
						t.Errorf("from %q to %q: %v; want legal: %v", from, next, err, legal)
					}
				}
			}
		}
	}
	for _, s := range allStates {
		for _, saved := range []bool{true, false} {
			// Only claims lead to Running, and commit makes none that is not saved.
			if at := StandingIn(s, saved); at.Unsaved() == saved && s != Running {
				t.Errorf("a record that is %q and saved: %v stands at %q", s, saved, at)
			}
		}
	}
}

// Nothing leads out of an end but its own saving or loss, and nothing leads back from a loss.
func TestStandingsEnd(t *testing.T) {
	for from, next := range map[Standing][]Standing{StandsEnded: {StandsLost}, StandsEndedUnsaved: {StandsEnded, StandsLost}, StandsLost: nil} {
		if got := standings[from].next; !slices.Equal(got, next) {
			t.Errorf("%q leads to %q, want %q", from, got, next)
		}
	}
	for from, row := range standings {
		if from != StandsLost && !slices.Contains(row.next, StandsLost) {
			t.Errorf("%q cannot be lost", from)
		}
	}
}
