package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// A side is one of the two servers that are compared. There are two processes of it: one
// keeps no pool.
type side struct {
	empty, full subject
}

// of returns the subject that the scenario needs.
func (s side) of(one scenario) subject {
	if one.empty {
		return s.empty
	}
	return s.full
}

// A pair is what both sides gave, one right after the other.
type pair struct {
	Old float64 `json:"old"`
	New float64 `json:"new"`
}

// A contest is a scenario and what the sides have given so far.
type contest struct {
	scenario
	// pairs are those of each figure.
	pairs [][]pair
	// took is what all of it took, longest what a pair may take.
	took, longest time.Duration
	// backward says that in the pair before the new side was first.
	backward bool
}

// turns is how many pairs of a scenario are taken before the next scenario has its turn.
func (c *contest) turns() int {
	if c.share == 0 {
		return 1
	}
	return 6 / min(c.share, 3)
}

// taken returns how many pairs there are.
func (c *contest) taken() int { return len(c.pairs[0]) }

// meet takes a pair. Of two pairs each side is first in one, so that neither gains from
// what the other leaves behind, nor from a machine that grows slower; chance says in
// which one, so that nothing that recurs meets always the same side.
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

// centers makes one measurement and returns the median of each figure.
func (c *contest) centers(ctx context.Context, s side) (centers []float64, err error) {
	subject := s.of(c.scenario)
	if err := subject.rest(ctx); err != nil {
		return nil, err
	}
	samples, err := c.measure(ctx, subject)
	for _, of := range samples {
		centers = append(centers, quantile(slices.Sorted(slices.Values(of)), 0.5))
	}
	return centers, err
}

// compare takes pairs of all scenarios in turn, so that a while in which the machine is
// busy spoils a few pairs of each rather than all of one. It ends when there are most
// pairs of each, or when another one would end too late.
func compare(ctx context.Context, list []scenario, before, after side, most int, end time.Time) ([]*contest, error) {
	contests := make([]*contest, len(list))
	for i, one := range list {
		contests[i] = &contest{scenario: one, pairs: make([][]pair, len(one.figures))}
		// The first time a server does something it does more. Where a measurement is of
		// many executions this does not count.
		if one.share == 0 {
			continue
		}
		for _, s := range []side{before, after} {
			if _, err := contests[i].centers(ctx, s); err != nil {
				return nil, fmt.Errorf("%s: %w", one.figures[0].name, err)
			}
		}
	}
	chance := rand.New(rand.NewPCG(1, 2)) // The same order in every run.
	for added := true; added; {
		added = false
		for _, c := range contests {
			for range c.turns() {
				if c.taken() == most || time.Now().Add(c.longest).After(end) {
					break
				}
				if err := c.meet(ctx, before, after, chance); err != nil {
					return nil, err
				}
				added = true
			}
		}
	}
	return contests, nil
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
	before, err := startSide(ctx, builds[0], dir, o.common(), nil)
	defer func() { err = errors.Join(err, before.stop()) }()
	if err != nil {
		return nil, err
	}
	after, err := startSide(ctx, builds[1], dir, o.common(), o.set)
	defer func() { err = errors.Join(err, after.stop()) }()
	if err != nil {
		return nil, err
	}
	end := time.Now().Add(o.time)
	progress.Printf("comparing, until %s at the latest …", end.Format(time.TimeOnly))
	list := matching(slices.Concat(scenarios, loads), o.run)
	contests, err := compare(ctx, list, before.side(after), after.side(before), o.pairs, end)
	if err != nil {
		return nil, fmt.Errorf("%w\nlogs of the servers:\n%s%s", err, before.logs(), after.logs())
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

// servers are the processes of a side.
type servers struct{ empty, full *server }

// abCount is the scale of measurements of many executions.
const abCount = 16

// startSide starts the servers of a side, without a pool and with one. A setting in set
// goes before one in common.
func startSide(ctx context.Context, b build, dir string, common, set settings) (s servers, err error) {
	all := settings{"POOL_SIZE": fullPool}
	maps.Copy(all, common)
	maps.Copy(all, set)
	if s.full, err = startServer(ctx, b.binary, dir, all); err != nil {
		return s, err
	}
	all["POOL_SIZE"] = "0"
	s.empty, err = startServer(ctx, b.binary, dir, all)
	return s, err
}

func (s servers) side(beside servers) side {
	return side{
		empty: s.empty.subject(abCount, s.full, beside.empty, beside.full),
		full:  s.full.subject(abCount, s.empty, beside.empty, beside.full),
	}
}

func (s servers) stop() error {
	var errs []error
	for _, one := range []*server{s.empty, s.full} {
		if one != nil {
			errs = append(errs, one.stop())
		}
	}
	return errors.Join(errs...)
}

func (s servers) logs() string { return fmt.Sprintf("%s\n%s\n", s.empty.log, s.full.log) }
