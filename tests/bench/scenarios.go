package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A subject is a server to measure.
type subject struct {
	client *client
	// n scales measurements of many executions.
	n int
	// rest waits until the server's pool is full and the machine has removed the sandboxes of
	// executions that have ended.
	rest func(ctx context.Context) error
	// processor returns for how long processors have run the server and its sandboxes.
	processor func() (time.Duration, error)
	// log is the server's log.
	log serverLog
}

// A figure is one row of a table.
type figure struct {
	name string
	unit unit
	// contains says how often the figure contains each floor.
	contains map[string]int
	// goals has a goal for each sandbox.
	goals map[string]goal
}

// A scenario is one thing to measure.
type scenario struct {
	figures []figure
	// empty says that the scenario needs a server without a pool. The others need a full pool.
	empty bool
	// share divides the number of samples that the user asked for. With 0 a single measurement
	// is enough, since it has many executions.
	share int
	// once says that repeated measurements of the same process give nearly the same.
	once bool
	// measure makes one measurement of a server at rest and returns the samples of each figure.
	measure func(ctx context.Context, s subject) ([][]float64, error)
}

// count returns how many measurements of the scenario yield n samples.
func (s scenario) count(n int) int {
	if s.share == 0 {
		return 1
	}
	return max(3, n/s.share)
}

// matching returns the scenarios that have a figure whose name matches.
func matching(list []scenario, names *regexp.Regexp) []scenario {
	return slices.DeleteFunc(slices.Clone(list), func(s scenario) bool {
		return !slices.ContainsFunc(s.figures, func(f figure) bool { return names.MatchString(f.name) })
	})
}

var scenarios = []scenario{
	{
		figures: []figure{{
			name: "first call, pool empty", unit: milliseconds,
			contains: map[string]int{floorHTTP: 1, floorSocket: 1, floorFork: 1},
			goals:    map[string]goal{"process": atMost(12)},
		}},
		empty: true, share: 1,
		measure: firstCall(python, "print(await lookup(n=1))", "None\n"),
	},
	{
		figures: []figure{{
			name: "private memory of a paused execution", unit: mebibytes,
			goals: map[string]goal{"process": atMost(4)},
		}},
		empty: true, once: true,
		measure: func(ctx context.Context, s subject) ([][]float64, error) {
			return s.memory(ctx, "")
		},
	},
	{
		figures: []figure{{
			name: "print, whole", unit: milliseconds,
			contains: map[string]int{floorHTTP: 1, floorSocket: 1},
			goals:    map[string]goal{"process": atMost(3), "docker": atMost(3)},
		}},
		share: 1,
		measure: func(ctx context.Context, s subject) ([][]float64, error) {
			took, err := s.whole(ctx, "print('hello')", "hello\n")
			return one(took), err
		},
	},
	{
		figures: []figure{{
			name: "first call", unit: milliseconds,
			contains: map[string]int{floorHTTP: 1, floorSocket: 1},
			goals:    map[string]goal{"process": atMost(3), "docker": atMost(3)},
		}},
		share:   1,
		measure: firstCall(python, "print(await lookup(n=1))", "None\n"),
	},
	{
		figures: []figure{{
			name: "first call, program uses pandas", unit: milliseconds,
			contains: map[string]int{floorHTTP: 1, floorSocket: 1},
			goals:    map[string]goal{"process": atMost(6), "docker": atMost(6)},
		}},
		share:   1,
		measure: firstCall(python, pandas+"await lookup(n=1)\nprint(1)", "1\n"),
	},
	{
		figures: []figure{
			{
				name: "one round", unit: milliseconds,
				contains: map[string]int{floorHTTP: 1, floorSocket: 1},
				goals:    map[string]goal{"process": atMost(0.6), "docker": atMost(1)},
			},
			{
				name: "20 sequential rounds, whole", unit: milliseconds,
				contains: map[string]int{floorHTTP: sequential + 1, floorSocket: sequential + 1},
				goals:    map[string]goal{"process": atMost(18), "docker": atMost(25)},
			},
		},
		share: 4,
		measure: func(ctx context.Context, s subject) ([][]float64, error) {
			return s.rounds(ctx, python, sequentialProgram, "40\n")
		},
	},
	{
		figures: []figure{{
			name: "gather of 10, whole", unit: milliseconds,
			contains: map[string]int{floorHTTP: 2, floorSocket: 2},
			goals:    map[string]goal{"process": atMost(5), "docker": atMost(5)},
		}},
		share: 1,
		measure: sideBySide(10, python, "print(await asyncio.gather(*(lookup(n=n) for n in range(10))))",
			"[1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"),
	},
	{
		figures: []figure{{name: "bash: first call", unit: milliseconds, goals: map[string]goal{"process": atMost(8)}}},
		share:   2,
		measure: firstCall(bash, `lookup '{"n":1}'`, "null\n"),
	},
	{
		figures: []figure{
			{name: "bash: one round", unit: milliseconds, goals: map[string]goal{"process": atMost(1.2)}},
			{name: "bash: 20 sequential rounds, whole", unit: milliseconds},
		},
		share: 10,
		measure: func(ctx context.Context, s subject) ([][]float64, error) {
			code := fmt.Sprintf(`for ((n = 0; n < %d; n++)); do lookup "{\"n\":$n}" >/dev/null; done; echo $n`, sequential)
			return s.rounds(ctx, bash, code, "20\n")
		},
	},
	{
		figures: []figure{{name: "bash: 5 side by side, whole", unit: milliseconds, goals: map[string]goal{"process": atMost(12)}}},
		share:   2,
		measure: sideBySide(5, bash, `for n in {0..4}; do lookup "{\"n\":$n}" & done; wait`, "1\n1\n1\n1\n1\n"),
	},
	{
		figures: []figure{{
			name: "1 MiB result in", unit: milliseconds,
			contains: map[string]int{floorHTTP1: 1, floorSocket1: 1},
			goals:    map[string]goal{"process": atMost(10), "docker": atMost(10)},
		}},
		share:   5,
		measure: resultIn(texts(1 << 20)),
	},
	{
		figures: []figure{{
			name: "10 MiB result in", unit: milliseconds,
			contains: map[string]int{floorHTTP10: 1, floorSocket10: 1},
			goals:    map[string]goal{"process": atMost(80), "docker": atMost(80)},
		}},
		share:   10,
		measure: resultIn(texts(10 << 20)),
	},
	{
		figures: []figure{{
			name: "new pauses, 16 clients", unit: perSecond,
			contains: map[string]int{floorHTTP: 1, floorSocket: 1, floorFork: 1},
			goals:    map[string]goal{"process": atLeast(150)},
		}},
		measure: func(ctx context.Context, s subject) ([][]float64, error) {
			rate, _, err := s.load(ctx, 16, 10*s.n, func() (time.Duration, error) {
				first, last, err := s.paused(ctx, python, "print(await lookup(n=1))", "7\n", json.RawMessage("7"))
				return first + last, err
			})
			return [][]float64{{rate}}, err
		},
	},
	{
		figures: []figure{{name: "private memory, sandbox from the pool", unit: mebibytes}},
		once:    true,
		measure: func(ctx context.Context, s subject) ([][]float64, error) {
			return s.memory(ctx, "")
		},
	},
	{
		figures: []figure{{name: "private memory, program uses pandas", unit: mebibytes}},
		once:    true,
		measure: func(ctx context.Context, s subject) ([][]float64, error) {
			return s.memory(ctx, pandas)
		},
	},
}

// loads are scenarios that are only meaningful in a comparison: clients that start a program as
// soon as their last one has ended, and the time that processors need.
var loads = []scenario{
	{
		figures: []figure{{name: "one round: processor time", unit: milliseconds}},
		measure: func(ctx context.Context, s subject) ([][]float64, error) {
			each, err := s.roundsOnProcessor(ctx)
			return [][]float64{each}, err
		},
	},
	sustained(1, "", "", 2), sustained(8, "", "", 6), sustained(64, "", "", 16),
	sustained(1, " pandas", pandas, 2), sustained(8, " pandas", pandas, 6), sustained(64, " pandas", pandas, 16),
}

// sustained runs n times scale programs from several clients.
func sustained(clients int, kind, code string, scale int) scenario {
	name := fmt.Sprintf("sustained%s, %d clients", kind, clients)
	if clients == 1 {
		name = fmt.Sprintf("sustained%s, 1 client", kind)
	}
	return scenario{
		figures: []figure{
			{name: name + ": executions", unit: perSecond},
			{name: name + ": p50", unit: milliseconds},
			{name: name + ": p99", unit: milliseconds},
			{name: name + ": processor time of each", unit: milliseconds},
		},
		measure: func(ctx context.Context, s subject) ([][]float64, error) {
			before, err := s.processor()
			if err != nil {
				return nil, err
			}
			rate, took, err := s.load(ctx, clients, scale*s.n, func() (time.Duration, error) {
				return s.whole(ctx, code+"print('hello')", "hello\n")
			})
			// This includes making new sandboxes for the pool in place of the used ones.
			if err := errors.Join(err, s.rest(ctx)); err != nil {
				return nil, err
			}
			after, err := s.processor()
			each := inMilliseconds(after-before) / float64(len(took))
			return [][]float64{{rate}, {quantile(took, 0.5)}, {quantile(took, 0.99)}, {each}}, err
		},
	}
}

const pandas = `frame = pd.DataFrame({"region": ["north", "south"] * 500, "sales": range(1000)})
total = frame.groupby("region").sum()
assert total.loc["south", "sales"] == 250000
`

// one returns a single sample of a single figure.
func one(took time.Duration) [][]float64 { return [][]float64{{inMilliseconds(took)}} }

// whole runs a program that calls no tools and prints stdout.
func (s subject) whole(ctx context.Context, code, stdout string) (time.Duration, error) {
	a, err := s.client.start(ctx, python, code)
	return a.took, errors.Join(err, a.completed(stdout))
}

// paused runs a program that calls lookup(n=1) once, gets value and prints stdout. It returns how
// long each of its two answers took.
func (s subject) paused(ctx context.Context, lang, code, stdout string, value json.RawMessage) (first, last time.Duration, err error) {
	pause, err := s.client.start(ctx, lang, code)
	if err := errors.Join(err, pause.paused(1, 1)); err != nil {
		return 0, 0, err
	}
	end, err := s.client.resume(ctx, pause, value)
	return pause.took, end.took, errors.Join(err, end.completed(stdout))
}

// firstCall measures the time until such a program pauses.
func firstCall(lang, code, stdout string) func(context.Context, subject) ([][]float64, error) {
	return func(ctx context.Context, s subject) ([][]float64, error) {
		first, _, err := s.paused(ctx, lang, code, stdout, nil)
		return one(first), err
	}
}

// resultIn measures the time from a continuation with a large result to the end of the program.
func resultIn(large payload) func(context.Context, subject) ([][]float64, error) {
	stdout := fmt.Sprintf("%d %d\n", large.length, large.characters)
	return func(ctx context.Context, s subject) ([][]float64, error) {
		_, last, err := s.paused(ctx, python, "texts = await lookup(n=1)\nprint(len(texts), sum(map(len, texts)))", stdout, large.json)
		return one(last), err
	}
}

// sequential is the highest number of rounds that a program may have.
const sequential = 20

var sequentialProgram = fmt.Sprintf("total = 0\nfor n in range(%d):\n    total += await lookup(n=n)\nprint(total)", sequential)

// rounds runs a program of sequential calls, each of which gets 2. It returns how long each round
// and how long the whole program took.
func (s subject) rounds(ctx context.Context, lang, code, stdout string) ([][]float64, error) {
	a, err := s.client.start(ctx, lang, code)
	whole := a.took
	var rounds []float64
	for n := 0; n < sequential && err == nil; n++ {
		if err := a.paused(n, 1); err != nil {
			return nil, err
		}
		a, err = s.client.resume(ctx, a, json.RawMessage("2"))
		whole += a.took
		rounds = append(rounds, inMilliseconds(a.took))
	}
	if err := errors.Join(err, a.completed(stdout)); err != nil {
		return nil, err
	}
	// The last answer is not that of a round, since it ends the program.
	return [][]float64{rounds[:sequential-1], {inMilliseconds(whole)}}, nil
}

// roundsOnProcessor runs n programs of sequential calls. For each it returns the time of processors
// for one round.
func (s subject) roundsOnProcessor(ctx context.Context) (each []float64, err error) {
	for range s.n {
		// Nothing else may happen during the rounds.
		a, err := s.client.start(ctx, python, sequentialProgram)
		if err := errors.Join(err, s.rest(ctx)); err != nil {
			return nil, err
		}
		before, err := s.processor()
		for n := 0; n < sequential-1 && err == nil; n++ {
			if err := a.paused(n, 1); err != nil {
				return nil, err
			}
			a, err = s.client.resume(ctx, a, json.RawMessage("2"))
		}
		if err != nil {
			return nil, err
		}
		after, err := s.processor()
		if err != nil {
			return nil, err
		}
		each = append(each, inMilliseconds(after-before)/(sequential-1))
		last, err := s.client.resume(ctx, a, json.RawMessage("2"))
		if err := errors.Join(err, last.completed("40\n")); err != nil {
			return nil, err
		}
	}
	return each, nil
}

// sideBySide measures a program that makes calls at the same time, each of which gets 1.
func sideBySide(calls int, lang, code, stdout string) func(context.Context, subject) ([][]float64, error) {
	return func(ctx context.Context, s subject) ([][]float64, error) {
		first, err := s.client.start(ctx, lang, code)
		if err := errors.Join(err, first.paused(0, calls)); err != nil {
			return nil, err
		}
		last, err := s.client.resume(ctx, first, json.RawMessage("1"))
		return one(first.took + last.took), errors.Join(err, last.completed(stdout))
	}
}

// load runs total programs from several clients, each of which starts the next program as soon as
// its last one has ended. It returns the programs per second and the milliseconds of each,
// sorted.
func (s subject) load(ctx context.Context, clients, total int, run func() (time.Duration, error)) (rate float64, took []float64, err error) {
	var next atomic.Int64
	took = make([]float64, total)
	failures := make([]error, clients)
	var running sync.WaitGroup
	begin := time.Now()
	for i := range clients {
		running.Go(func() {
			for failures[i] == nil && ctx.Err() == nil {
				program := int(next.Add(1)) - 1
				if program >= total {
					return
				}
				var t time.Duration
				t, failures[i] = run()
				took[program] = inMilliseconds(t)
			}
		})
	}
	running.Wait()
	rate = float64(total) / time.Since(begin).Seconds()
	slices.Sort(took)
	return rate, took, errors.Join(append(failures, ctx.Err())...)
}

// A payload is a large JSON value.
type payload struct {
	json []byte
	// length is the length of the list, characters the number of characters in all its texts.
	length, characters int
}

// texts returns a list of texts of a thousand characters, size bytes of JSON in all.
func texts(size int) payload {
	const line = "Sales in the \"north\" rose; see table 7.\n"
	text := strings.Repeat(line, 25)
	quoted, _ := json.Marshal(text) // A string can always be encoded.
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

// wait waits for a time, or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
