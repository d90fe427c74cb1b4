package sandbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The states are those of the runner.
func TestStates(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "python", "testdata", "states.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table struct{ Moves map[State][]State }
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	states := []State{Starting, Ready, Running, Paused, Ended}
	if len(table.Moves) != len(states) {
		t.Errorf("the table has %d states, want %d", len(table.Moves), len(states))
	}
	for _, s := range states {
		if _, known := table.Moves[s]; !known {
			t.Errorf("the table does not have the state %q", s)
		}
	}
	for from, all := range table.Moves {
		for _, to := range all {
			if !slices.Contains(states, to) {
				t.Errorf("the table has a move from %q to %q, which is no state", from, to)
			}
		}
	}
}
