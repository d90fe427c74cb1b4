package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// warmUp is how many samples at the start do not count.
const warmUp = 3

// A subject is a server to measure.
type subject struct {
	client *client
	// n is how many samples to take.
	n int
	// settle is how long the machine is left alone after an execution: the server fills
	// its pool, the kernel takes the old sandbox apart.
	settle time.Duration
}

// A scenario is one thing to measure.
type scenario struct {
	name string
	unit unit
	// contains says how often each floor is paid for in it.
	contains map[string]int
	// goals are by sandbox.
	goals   map[string]goal
	measure func(ctx context.Context, s subject) ([]float64, error)
}

// coldStart needs a server that keeps no pool.
var coldStart = scenario{
	name: "first call, pool empty", unit: milliseconds,
	contains: map[string]int{floorHTTP: 1, floorSocket: 1, floorFork: 1},
	goals:    map[string]goal{"process": atMost(12)},
	measure: func(ctx context.Context, s subject) ([]float64, error) {
		return s.firstCalls(ctx, "print(await lookup(n=1))", "None\n")
	},
}

// scenarios need a server with a warm pool.
var scenarios = []scenario{
	{
		name: "print, whole", unit: milliseconds,
		contains: map[string]int{floorHTTP: 1, floorSocket: 1},
		goals:    map[string]goal{"process": atMost(3), "docker": atMost(3)},
		measure: func(ctx context.Context, s subject) ([]float64, error) {
			return s.repeat(ctx, s.n, func() (time.Duration, error) {
				a, err := s.client.start(ctx, "print('hello')")
				return a.took, errors.Join(err, a.completed("hello\n"))
			})
		},
	},
	{
		name: "first call", unit: milliseconds,
		contains: map[string]int{floorHTTP: 1, floorSocket: 1},
		goals:    map[string]goal{"process": atMost(3), "docker": atMost(3)},
		measure: func(ctx context.Context, s subject) ([]float64, error) {
			return s.firstCalls(ctx, "print(await lookup(n=1))", "None\n")
		},
	},
	{
		name: "first call, program uses pandas", unit: milliseconds,
		contains: map[string]int{floorHTTP: 1, floorSocket: 1},
		goals:    map[string]goal{"process": atMost(6), "docker": atMost(6)},
		measure: func(ctx context.Context, s subject) ([]float64, error) {
			return s.firstCalls(ctx, pandasProgram, "1\n")
		},
	},
	{
		name: "one round", unit: milliseconds,
		contains: map[string]int{floorHTTP: 1, floorSocket: 1},
		goals:    map[string]goal{"process": atMost(0.6), "docker": atMost(1)},
		measure: func(ctx context.Context, s subject) ([]float64, error) {
			var samples []float64
			_, err := s.repeat(ctx, max(2, s.n/10), func() (time.Duration, error) {
				took, err := s.rounds(ctx)
				// The first and the last answer are no rounds: they start and end the program.
				if err != nil {
					return 0, err
				}
				for _, round := range took[1:sequential] {
					samples = append(samples, inMilliseconds(round))
				}
				return 0, nil
			})
			if err != nil {
				return nil, err
			}
			return samples[warmUp*(sequential-1):], nil
		},
	},
	{
		name: "20 sequential rounds, whole", unit: milliseconds,
		contains: map[string]int{floorHTTP: sequential + 1, floorSocket: sequential + 1},
		goals:    map[string]goal{"process": atMost(18), "docker": atMost(25)},
		measure: func(ctx context.Context, s subject) ([]float64, error) {
			return s.repeat(ctx, max(2, s.n/4), func() (whole time.Duration, err error) {
				took, err := s.rounds(ctx)
				for _, one := range took {
					whole += one
				}
				return whole, err
			})
		},
	},
	{
		name: "gather of 10, whole", unit: milliseconds,
		contains: map[string]int{floorHTTP: 2, floorSocket: 2},
		goals:    map[string]goal{"process": atMost(5), "docker": atMost(5)},
		measure: func(ctx context.Context, s subject) ([]float64, error) {
			return s.repeat(ctx, s.n, func() (time.Duration, error) { return s.gather(ctx) })
		},
	},
	{
		name: "1 MiB result in", unit: milliseconds,
		contains: map[string]int{floorHTTP1: 1, floorSocket1: 1},
		goals:    map[string]goal{"process": atMost(10), "docker": atMost(10)},
		measure: func(ctx context.Context, s subject) ([]float64, error) {
			return s.resultIn(ctx, max(3, s.n/5), texts(1<<20))
		},
	},
	{
		name: "10 MiB result in", unit: milliseconds,
		contains: map[string]int{floorHTTP10: 1, floorSocket10: 1},
		goals:    map[string]goal{"process": atMost(80), "docker": atMost(80)},
		measure: func(ctx context.Context, s subject) ([]float64, error) {
			return s.resultIn(ctx, max(3, s.n/10), texts(10<<20))
		},
	},
	{
		name: fmt.Sprintf("new pauses, %d clients", crowd), unit: perSecond,
		contains: map[string]int{floorHTTP: 1, floorSocket: 1, floorFork: 1},
		goals:    map[string]goal{"process": atLeast(150)},
		measure:  func(ctx context.Context, s subject) ([]float64, error) { return s.pauses(ctx) },
	},
	{
		name: "private memory of a paused execution", unit: mebibytes,
		goals:   map[string]goal{"process": atMost(4)},
		measure: func(ctx context.Context, s subject) ([]float64, error) { return s.memory(ctx) },
	},
}

const pandasProgram = `frame = pd.DataFrame({"region": ["north", "south"] * 500, "sales": range(1000)})
total = frame.groupby("region").sum()
assert total.loc["south", "sales"] == 250000
await lookup(n=1)
print(1)
`

// repeat takes n samples, with the pool full at the start of each.
func (s subject) repeat(ctx context.Context, n int, measure func() (time.Duration, error)) ([]float64, error) {
	var samples []float64
	for i := range n + warmUp {
		if err := wait(ctx, s.settle); err != nil {
			return nil, err
		}
		took, err := measure()
		if err != nil {
			return nil, err
		}
		if i >= warmUp {
			samples = append(samples, inMilliseconds(took))
		}
	}
	return samples, nil
}

// firstCalls measures until the first pause of a program that calls lookup(n=1) once
// and then prints stdout.
func (s subject) firstCalls(ctx context.Context, code, stdout string) ([]float64, error) {
	return s.repeat(ctx, s.n, func() (time.Duration, error) {
		first, err := s.client.start(ctx, code)
		if err := errors.Join(err, first.paused(1, 1)); err != nil {
			return 0, err
		}
		last, err := s.client.resume(ctx, first, nil)
		return first.took, errors.Join(err, last.completed(stdout))
	})
}

// sequential is how many rounds a program may have.
const sequential = 20

// rounds runs a program of sequential calls and returns what each answer took.
func (s subject) rounds(ctx context.Context) ([]time.Duration, error) {
	a, err := s.client.start(ctx, fmt.Sprintf("total = 0\nfor n in range(%d):\n    total += await lookup(n=n)\nprint(total)", sequential))
	took := []time.Duration{a.took}
	for n := 0; n < sequential && err == nil; n++ {
		if err := a.paused(n, 1); err != nil {
			return took, err
		}
		a, err = s.client.resume(ctx, a, json.RawMessage("2"))
		took = append(took, a.took)
	}
	return took, errors.Join(err, a.completed("40\n"))
}

// gather runs a program with ten calls at a time.
func (s subject) gather(ctx context.Context) (time.Duration, error) {
	first, err := s.client.start(ctx, "print(await asyncio.gather(*(lookup(n=n) for n in range(10))))")
	if err := errors.Join(err, first.paused(0, 10)); err != nil {
		return 0, err
	}
	last, err := s.client.resume(ctx, first, json.RawMessage("1"))
	return first.took + last.took, errors.Join(err, last.completed("[1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"))
}

// resultIn measures a round that brings a large result, up to the end of the program.
func (s subject) resultIn(ctx context.Context, n int, large payload) ([]float64, error) {
	stdout := fmt.Sprintf("%d %d\n", large.length, large.characters)
	return s.repeat(ctx, n, func() (time.Duration, error) {
		first, err := s.client.start(ctx, "texts = await lookup(n=1)\nprint(len(texts), sum(map(len, texts)))")
		if err := errors.Join(err, first.paused(1, 1)); err != nil {
			return 0, err
		}
		last, err := s.client.resume(ctx, first, large.json)
		return last.took, errors.Join(err, last.completed(stdout))
	})
}

// crowd is how many clients come at once.
const crowd = 16

// pauses has many clients start programs, each of which is paused once and then ends.
func (s subject) pauses(ctx context.Context) ([]float64, error) {
	var left atomic.Int64
	left.Store(int64(s.n * 5))
	total := left.Load()
	failures := make([]error, crowd)
	var clients sync.WaitGroup
	begin := time.Now()
	for i := range crowd {
		clients.Go(func() {
			for failures[i] == nil && left.Add(-1) >= 0 {
				failures[i] = s.once(ctx)
			}
		})
	}
	clients.Wait()
	rate := float64(total) / time.Since(begin).Seconds()
	return []float64{rate}, errors.Join(failures...)
}

func (s subject) once(ctx context.Context) error {
	first, err := s.client.start(ctx, "print(await lookup(n=1))")
	if err := errors.Join(err, first.paused(1, 1)); err != nil {
		return err
	}
	last, err := s.client.resume(ctx, first, json.RawMessage("7"))
	return errors.Join(err, last.completed("7\n"))
}

// A payload is a JSON value that is not small.
type payload struct {
	json []byte
	// length is that of the list, characters that of all texts in it.
	length, characters int
}

// texts returns a list of texts of a thousand characters, size bytes of JSON in all.
func texts(size int) payload {
	const line = "Sales in the \"north\" rose; see table 7.\n"
	text := strings.Repeat(line, 25)
	quoted, _ := json.Marshal(text) // A string has no errors.
	p := payload{json: []byte{'['}}
	for len(p.json)+len(quoted)+1 <= size {
		if p.length > 0 {
			p.json = append(p.json, ',')
		}
		p.json = append(p.json, quoted...)
		p.length++
		p.characters += len(text)
	}
	p.json = append(p.json, ']')
	return p
}

// wait returns when the time is over.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
