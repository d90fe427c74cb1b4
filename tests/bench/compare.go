package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A side is one of the two servers that are compared. It runs as two processes: one without a
// pool and one with a full pool.
type side struct {
	empty, full subject
}

// of returns the process that the scenario needs.
func (s side) of(one scenario) subject {
	if one.empty {
		return s.empty
	}
	return s.full
}

// A pair is one measurement of each side, one right after the other.
type pair struct {
	Old float64 `json:"old"`
	New float64 `json:"new"`
}

// A contest is a scenario and the pairs that were measured of it so far.
type contest struct {
	scenario
	// pairs are the pairs of each figure.
	pairs [][]pair
	// took is the time that all pairs took, longest that of the slowest pair.
	took, longest time.Duration
	// backward says that in the last pair the new side was measured first.
	backward bool
}

// turns returns how many pairs of a scenario are measured before the next scenario has its turn.
func (c *contest) turns() int {
	if c.share == 0 {
		return 1
	}
	return 6 / min(c.share, 3)
}

// taken returns the number of pairs so far.
func (c *contest) taken() int { return len(c.pairs[0]) }

// meet measures a pair. In one of two successive pairs the old side comes first, in the other the
// new side, so that neither gains from what the other one leaves behind, nor from a machine
// that becomes slower. Chance decides in which of the two, so that nothing that happens at
// regular intervals always hits the same side.
func (c *contest) meet(ctx context.Context, before, after side, chance *rand.Rand) error {
	begin := time.Now()
	if c.taken()%2 == 0 {
		c.backward = chance.IntN(2) == 1
	} else {
		c.backward = !c.backward
	}
	order := []side{before, after}
	if c.backward {
		slices.Reverse(order)
	}
	var values [2][]float64
	for i, s := range order {
		var err error
		if values[i], err = c.centers(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", c.figures[0].name, err)
		}
	}
	if c.backward {
		slices.Reverse(values[:])
	}
	for i := range c.figures {
		c.pairs[i] = append(c.pairs[i], pair{Old: values[0][i], New: values[1][i]})
	}
	took := time.Since(begin)
	c.took += took
	c.longest = max(c.longest, took)
	return nil
}

// centers makes one measurement of a side and returns the median of each figure.
func (c *contest) centers(ctx context.Context, s side) (centers []float64, err error) {
	subject := s.of(c.scenario)
	if err := subject.rest(ctx); err != nil {
		return nil, err
	}
	samples, err := c.measure(ctx, subject)
	for _, of := range samples {
		centers = append(centers, quantile(slices.Sorted(slices.Values(of)), 0.5))
	}
	if err != nil {
		return nil, fmt.Errorf("%w\nlog of the server:\n%s", err, subject.log)
	}
	return centers, nil
}

// generation is how long servers are measured before they are started anew. Two processes
// of the same binary differ by a percent or two for as long as they live, above all in
// memory. This must not look like a difference of the binaries.
const generation = 10 * time.Second

// A starter starts both sides and returns a function that stops them.
type starter func(ctx context.Context) (before, after side, stop func() error, err error)

// compare measures pairs until there are enough of each scenario, which is most, or until
// another pair would end too late.
func compare(ctx context.Context, list []scenario, start starter, most int, end time.Time) ([]*contest, error) {
	contests := make([]*contest, len(list))
	for i, one := range list {
		contests[i] = &contest{scenario: one, pairs: make([][]pair, len(one.figures))}
	}
	chance := rand.New(rand.NewPCG(1, 2)) // The same order in every run.
	for {
		begin := time.Now()
		before, after, stop, err := start(ctx)
		if err != nil {
			return nil, err
		}
		starting := time.Since(begin)
		taken, err := compareGeneration(ctx, contests, before, after, chance, most, end)
		if err := errors.Join(err, stop()); err != nil {
			return nil, err
		}
		full := !slices.ContainsFunc(contests, func(c *contest) bool { return c.taken() < most })
		if !taken || full || time.Now().Add(starting).After(end) {
			return contests, nil
		}
	}
}

// compareGeneration measures pairs of all scenarios in turn, so that a moment in which the
// machine is busy spoils a few pairs of each scenario and not all pairs of one. It reports
// whether it has measured any.
func compareGeneration(
	ctx context.Context, contests []*contest, before, after side, chance *rand.Rand, most int, end time.Time,
) (taken bool, err error) {
	for _, c := range contests {
		// A server does more when it does something for the first time, so the first measurement
		// does not count. In a measurement of many executions this makes no difference.
		if c.share == 0 {
			continue
		}
		for _, s := range []side{before, after} {
			if _, err := c.centers(ctx, s); err != nil {
				return false, fmt.Errorf("%s: %w", c.figures[0].name, err)
			}
		}
	}
	begin := time.Now()
	for first, added := true, true; added && (first || time.Since(begin) < generation); first = false {
		added = false
		for _, c := range contests {
			if c.once && !first {
				continue
			}
			for range c.turns() {
				if c.taken() == most || time.Now().Add(c.longest).After(end) {
					break
				}
				if err := c.meet(ctx, before, after, chance); err != nil {
					return false, err
				}
				added, taken = true, true
			}
		}
	}
	return taken, nil
}

// runComparison builds both servers, starts them and compares them.
func runComparison(ctx context.Context, o options, dir string, progress *log.Logger) (c *comparison, err error) {
	progress.Print("building the servers …")
	var builds [2]build
	for i, commit := range []string{o.old, o.new} {
		if commit == "" {
			builds[i], err = buildTree(ctx, dir)
		} else {
			builds[i], err = buildCommit(ctx, dir, commit)
		}
		if err != nil {
			return nil, err
		}
	}
	sides := [2]launch{{builds[0], dir, o.common(), nil}, {builds[1], dir, o.common(), o.set}}
	end := time.Now().Add(o.time)
	progress.Printf("comparing, until %s at the latest …", end.Format(time.TimeOnly))
	list := matching(slices.Concat(scenarios, loads), o.run)
	contests, err := compare(ctx, list, func(ctx context.Context) (side, side, func() error, error) {
		return startSides(ctx, sides)
	}, o.pairs, end)
	if err != nil {
		return nil, err
	}
	c = &comparison{Machine: machine(), Sandbox: o.sandbox, Store: o.storeName(), Old: builds[0].source, New: builds[1].source}
	for _, name := range slices.Sorted(maps.Keys(o.set)) {
		c.New += " " + name + "=" + o.set[name]
	}
	for _, one := range contests {
		c.add(one)
	}
	return c, nil
}

// abCount is how many executions a measurement of many executions has in a comparison.
const abCount = 8

// startSides starts the servers of both sides at the same time, so that none is older.
func startSides(ctx context.Context, sides [2]launch) (before, after side, stop func() error, err error) {
	var all [4]*server // The old side's, then the new side's; in each the one without a pool first.
	var errs [4]error
	var starting sync.WaitGroup
	for i := range all {
		starting.Go(func() { all[i], errs[i] = sides[i/2].start(ctx, i%2 == 0) })
	}
	starting.Wait()
	stop = func() error {
		var errs [4]error
		var stopping sync.WaitGroup
		for i, one := range all {
			if one != nil {
				stopping.Go(func() { errs[i] = one.stop() })
			}
		}
		stopping.Wait()
		return errors.Join(errs[:]...)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return side{}, side{}, nil, errors.Join(err, stop())
	}
	subjectOf := func(i int) subject {
		// A server that has just been asked for its metrics is faster, since its threads are
		// awake. On both sides the server that is measured must be the one asked last.
		order := append(slices.Delete(slices.Clone(all[:]), i, i+1), all[i])
		return all[i].subject(abCount, resting(order...))
	}
	before = side{empty: subjectOf(0), full: subjectOf(1)}
	after = side{empty: subjectOf(2), full: subjectOf(3)}
	return before, after, stop, nil
}
