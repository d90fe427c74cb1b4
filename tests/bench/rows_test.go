package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesOfRows(t *testing.T) {
	seen := map[string]bool{}
	for _, one := range slices.Concat(scenarios, serverToolScenarios, loads) {
		for _, f := range one.figures {
			if seen[f.name] {
				t.Errorf("two rows have the name %q", f.name)
			}
			seen[f.name] = true
		}
	}
}

// TestLaunchSettings checks that a server which must keep no pool keeps none of either kind.
func TestLaunchSettings(t *testing.T) {
	l := launch{common: settings{"SANDBOX": "process"}, set: settings{"POOL_PLAIN": "3", "POOL_SCIENTIFIC": "2", "CPUS": "1"}}
	if diff := cmp.Diff(settings{"SANDBOX": "process", "CPUS": "1", "POOL_SIZE": "0"}, l.settings(true)); diff != "" {
		t.Errorf("settings without a pool (-want +got):\n%s", diff)
	}
	want := settings{"SANDBOX": "process", "CPUS": "1", "POOL_SIZE": "8", "POOL_PLAIN": "3", "POOL_SCIENTIFIC": "2"}
	if diff := cmp.Diff(want, l.settings(false)); diff != "" {
		t.Errorf("settings with a pool (-want +got):\n%s", diff)
	}
	l.set = settings{"POOL_SIZE": "16"}
	if got := l.settings(false)["POOL_SIZE"]; got != "16" {
		t.Errorf("POOL_SIZE = %q, want the 16 that was set", got)
	}
}
