package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// restTimeout is how long a server may take to fill its pool and to destroy sandboxes
	// that have ended. Each container takes seconds.
	restTimeout = 2 * time.Minute
	// lookInterval is how often the server is asked whether it rests. Each answer costs it a
	// millisecond.
	lookInterval = 10 * time.Millisecond
	// calm is how long the kernel gets after that: it takes apart the namespaces of a sandbox
	// when the last process in them has ended.
	calm = 20 * time.Millisecond
)

var metricsLine = regexp.MustCompile(`(?m)^.*msg"?[=:]"?metrics are served\b.*?(\d+\.\d+\.\d+\.\d+:\d+).*\n`)

// watchMetrics finds the address of the server's metrics in its log. The server logs it before
// it serves.
func (s *server) watchMetrics() error {
	address, err := s.log.find(metricsLine)
	if err != nil {
		return err
	}
	if address == "" {
		return fmt.Errorf("the server's log does not tell the address of its metrics\n%s", s.log)
	}
	s.metrics = "http://" + address + "/metrics"
	s.watch = newClient(s.metrics, "")
	return nil
}

// resting returns a function that waits until all the servers rest. A server that is still busy
// with its last execution would slow down the one that is measured.
func resting(servers ...*server) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeoutCause(ctx, restTimeout, fmt.Errorf("the server does not rest after %v", restTimeout))
		defer cancel()
		for _, s := range servers {
			for {
				page, err := s.watch.get(ctx, s.metrics)
				if err != nil {
					return err
				}
				rests, err := atRest(page)
				if err != nil {
					return err
				}
				if rests {
					break
				}
				if err := wait(ctx, lookInterval); err != nil {
					return fmt.Errorf("%w\n%s", context.Cause(ctx), s.log)
				}
			}
		}
		return wait(ctx, calm)
	}
}

// atRest reports, from a page of metrics, whether the server's pool is full and whether all
// other sandboxes belong to executions, so that none is being made or destroyed. Metrics of
// several pools are added up.
func atRest(page []byte) (bool, error) {
	size, err := metric(page, "fermata_pool_size")
	if err != nil {
		return false, err
	}
	idle, err := metric(page, "fermata_pool_idle")
	if err != nil {
		return false, err
	}
	live, err := metric(page, "fermata_pool_live")
	if err != nil {
		return false, err
	}
	executions, err := metric(page, "fermata_executions")
	return idle >= size && live == idle+executions, err
}

// metric returns the sum of a metric over all its labels.
func metric(page []byte, name string) (sum float64, err error) {
	found := false
	for line := range strings.Lines(string(page)) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || !strings.HasPrefix(rest, " ") && !strings.HasPrefix(rest, "{") {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' ')+1:]), 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", name, err)
		}
		sum, found = sum+value, true
	}
	if !found {
		return 0, fmt.Errorf("the server has no metric %s", name)
	}
	return sum, nil
}
