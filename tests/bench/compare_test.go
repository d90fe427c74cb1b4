package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A fakeSide stands in for a server. It records the order of the measurements.
type fakeSide struct {
	name   string
	values []float64
	events *[]string
}

func (f fakeSide) side() side {
	s := subject{n: 1, client: &client{url: f.name}, rest: func(context.Context) error {
		*f.events = append(*f.events, "rest "+f.name)
		return nil
	}}
	return side{empty: s, full: s}
}

// starting returns a starter of sides that are already there.
func starting(before, after fakeSide) starter {
	return func(context.Context) (side, side, func() error, error) {
		*before.events = append(*before.events, "start all")
		return before.side(), after.side(), func() error {
			*before.events = append(*before.events, "stop all")
			return nil
		}, nil
	}
}

// fakeScenario returns a scenario of one figure. Each measurement of a side returns the next one of
// its values.
func fakeScenario(name string, share int, sides ...fakeSide) scenario {
	left := map[string][]float64{}
	for _, s := range sides {
		left[s.name] = s.values
	}
	return scenario{
		figures: []figure{{name: name, unit: milliseconds}}, share: share,
		measure: func(_ context.Context, s subject) ([][]float64, error) {
			side := s.client.url
			*sides[0].events = append(*sides[0].events, name+" "+side)
			if len(left[side]) == 0 {
				return nil, errors.New("no values are left")
			}
			value := left[side][0]
			left[side] = left[side][1:]
			// The figure is the median, not the mean.
			return [][]float64{{value + 1000, value, value - 1}}, nil
		},
	}
}

func TestCompareTakesTurns(t *testing.T) {
	var events []string
	before := fakeSide{"old", []float64{1, 2, 3, 4}, &events}
	after := fakeSide{"new", []float64{10, 20, 30, 40}, &events}
	// A scenario of a single measurement has one pair in each turn and no warm-up.
	list := []scenario{fakeScenario("long", 0, before, after), fakeScenario("short", 4, before, after)}
	contests, err := compare(t.Context(), list, starting(before, after), 3, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	got := slices.DeleteFunc(slices.Clone(events), func(event string) bool {
		return !strings.HasSuffix(event, "old") && !strings.HasSuffix(event, "new") || strings.HasPrefix(event, "rest")
	})
	if diff := cmp.Diff([]string{"short old", "short new"}, got[:2]); diff != "" {
		t.Errorf("the warm-up (-want +got):\n%s", diff)
	}
	var rows, first []string
	for both := range slices.Chunk(got[2:], 2) {
		row, side, _ := strings.Cut(both[0], " ")
		rows, first = append(rows, row), append(first, side)
		other := map[string]string{"old": "new", "new": "old"}[side]
		if both[1] != row+" "+other {
			t.Errorf("after %q came %q, want the other side", both[0], both[1])
		}
	}
	if diff := cmp.Diff([]string{"long", "short", "short", "long", "short", "long"}, rows); diff != "" {
		t.Errorf("order of pairs (-want +got):\n%s", diff)
	}
	if first[0] == first[3] || first[1] == first[2] {
		t.Errorf("first in the pairs were %v, want each side once in two of a row", first)
	}
	for i, event := range events {
		if what, side, _ := strings.Cut(event, " "); (what == "long" || what == "short") && events[i-1] != "rest "+side {
			t.Errorf("before %q came %q, want a rest", event, events[i-1])
		}
	}
	if diff := cmp.Diff([]pair{{1, 10}, {2, 20}, {3, 30}}, contests[0].pairs[0]); diff != "" {
		t.Errorf("pairs of the long scenario (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]pair{{2, 20}, {3, 30}, {4, 40}}, contests[1].pairs[0]); diff != "" {
		t.Errorf("pairs of the short scenario (-want +got):\n%s", diff)
	}
}

// TestCompareGenerations checks that a figure that depends on the process is measured once for each
// process, and that servers are stopped whatever happens.
func TestCompareGenerations(t *testing.T) {
	var events []string
	before, after := fakeSide{"old", []float64{1, 2, 3}, &events}, fakeSide{"new", []float64{1, 2}, &events}
	one := fakeScenario("memory", 0, before, after)
	one.once = true
	_, err := compare(t.Context(), []scenario{one}, starting(before, after), 9, time.Now().Add(time.Hour))
	if err == nil {
		t.Error("the third measurement of the new side did not fail")
	}
	counts := map[string]int{}
	for _, event := range events {
		counts[event]++
	}
	if counts["start all"] != 3 || counts["stop all"] != 3 || counts["memory old"] > 3 || counts["memory new"] != 3 {
		t.Errorf("got %v, want three generations with a measurement of each side in each", counts)
	}
}

func TestCompareEnds(t *testing.T) {
	var events []string
	before, after := fakeSide{"old", []float64{1}, &events}, fakeSide{"new", []float64{1}, &events}
	contests, err := compare(t.Context(), []scenario{fakeScenario("x", 0, before, after)}, starting(before, after), 9, time.Now())
	if err != nil || contests[0].taken() != 0 {
		t.Errorf("with no time left: %d pairs and the error %v, want none", contests[0].taken(), err)
	}
	_, err = compare(t.Context(), []scenario{fakeScenario("x", 0, before, after)}, starting(before, after), 2, time.Now().Add(time.Hour))
	if err == nil || !strings.Contains(err.Error(), "x: no values are left") {
		t.Errorf("a measurement that fails: error %v, want its own with the name of the row", err)
	}
}

func TestLoad(t *testing.T) {
	var ran atomic.Int64
	rate, took, err := subject{}.load(t.Context(), 8, 100, func() (time.Duration, error) {
		return time.Duration(101-ran.Add(1)) * time.Millisecond, nil
	})
	if err != nil || ran.Load() != 100 || rate <= 0 {
		t.Errorf("ran %d programs, rate %v, error %v; want 100 and a rate", ran.Load(), rate, err)
	}
	if !slices.IsSorted(took) || len(took) != 100 || took[0] != 1 || took[99] != 100 {
		t.Errorf("took %v, want 1 to 100 in order", took)
	}
	broken := errors.New("broken")
	_, _, err = subject{}.load(t.Context(), 8, 100, func() (time.Duration, error) { return 0, broken })
	if !errors.Is(err, broken) {
		t.Errorf("error = %v, want %v", err, broken)
	}
}

// TestProcessorTime checks that the time of a child counts while the child lives and after it has
// ended.
func TestProcessorTime(t *testing.T) {
	before, err := processorTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo ready; read end || :")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	alive, err := processorTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	after, err := processorTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if used < 2*tick {
		t.Fatalf("the child used %v, which is too little to be seen", used)
	}
	for when, now := range map[string]time.Duration{"alive": alive, "ended": after} {
		if now-before < used-2*tick {
			t.Errorf("with the child %s the time is %v more, want at least %v", when, now-before, used)
		}
	}
}

func TestAtRest(t *testing.T) {
	page := func(size, idle, live, paused string) string {
		return "# HELP fermata_pool_size How many.\n# TYPE fermata_pool_size gauge\nfermata_pool_size " + size +
			"\nfermata_pool_size_other 7\nfermata_pool_idle " + idle + "\nfermata_pool_live " + live +
			"\nfermata_executions_total{state=\"completed\"} 100\n" +
			"fermata_executions{state=\"paused\"} " + paused + "\nfermata_executions{state=\"running\"} 1\n"
	}
	for _, test := range []struct {
		name, page string
		want       bool
	}{
		{"full", page("8", "8", "11", "2"), true},
		{"one is missing", page("8", "7", "10", "2"), false},
		{"one is being made or destroyed", page("8", "8", "12", "2"), false},
		{"no pool", page("0", "0", "3", "2"), true},
	} {
		got, err := atRest([]byte(test.page))
		if got != test.want || err != nil {
			t.Errorf("%s: at rest = %t, error %v; want %t", test.name, got, err, test.want)
		}
	}
	for _, broken := range []string{"", page("x", "8", "8", "0"), "fermata_pool_size 1\nfermata_pool_idle 1\nfermata_pool_live 1\n"} {
		if got, err := atRest([]byte(broken)); err == nil {
			t.Errorf("at rest = %t for the page %q, want an error", got, broken)
		}
	}
}
