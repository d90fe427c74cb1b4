package main

import (
	"context"
	"regexp"
	"slices"
	"time"
)

// A subject is a server to measure.
type subject struct {
	client *client
	// n is how many executions a measurement of many executions has; a sustained load has
	// a multiple of it.
	n int
	// rest returns when the server's pool is full and the kernel has taken apart the
	// sandboxes of executions that have ended.
	rest func(ctx context.Context) error
	// processor returns the processor time that the server and its sandboxes have used.
	processor func() (time.Duration, error)
	// endpoint is what a tool of the server calls, if this server has one.
	endpoint *endpoint
	// log is the server's log, for the message of a measurement that fails.
	log serverLog
}

// A figure is one row of a table.
type figure struct {
	name string
	unit unit
	// contains says how often each floor is a part of the figure.
	contains map[string]int
	goals    goals
}

// goals are the goals of a figure by sandbox, "process" or "docker".
type goals map[string]goal

// A scenario is something to measure. One measurement may give several figures.
type scenario struct {
	figures []figure
	// empty says that the scenario needs a server that keeps no pool. The others need a
	// server whose pool is full.
	empty bool
	// share divides the number of samples that the user asks for: a slow scenario takes one
	// sample where others take this many. 0 is for a measurement of many executions, which
	// is made once.
	share int
	// once says that the figures depend on the server's process more than on anything else, so
	// that one measurement of each process is enough.
	once bool
	// measure makes one measurement of a server at rest and returns the samples of each
	// figure.
	measure func(ctx context.Context, s subject) ([][]float64, error)
}

// count returns how many measurements of the scenario make n samples.
func (s scenario) count(n int) int {
	if s.share == 0 {
		return 1
	}
	return max(3, n/s.share)
}

// matching returns the scenarios with at least one figure whose name matches.
func matching(list []scenario, names *regexp.Regexp) []scenario {
	return slices.DeleteFunc(slices.Clone(list), func(s scenario) bool {
		return !slices.ContainsFunc(s.figures, func(f figure) bool { return names.MatchString(f.name) })
	})
}
