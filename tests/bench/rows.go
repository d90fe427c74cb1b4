package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// A kind is a kind of sandbox. The server chooses the kind by the text of a program, so the
// same programs run on a server of a time before there were kinds.
type kind struct {
	name string
	// mark is the first line of the kind's programs. It makes the server choose the kind and
	// does nothing else.
	mark string
	// fork is the floor of making such a sandbox.
	fork string
	// These are the goals for process sandboxes that depend on the kind.
	firstCall, pauses float64
}

var (
	plain      = kind{name: "plain", fork: floorForkPlain, firstCall: 2, pauses: 150}
	scientific = kind{name: "scientific", mark: "np\n", fork: floorFork, firstCall: 2.5, pauses: 80}
)

// pandas is a program that uses pandas.
const pandas = `frame = pd.DataFrame({"region": ["north", "south"] * 500, "sales": range(1000)})
total = frame.groupby("region").sum()
assert total.loc["south", "sales"] == 250000
`

// fromPool returns the floors of an answer by a sandbox from the pool.
func fromPool() map[string]int { return map[string]int{floorHTTP: 1, floorSocket: 1} }

// forked returns the floors of an answer by a sandbox that has to be made first.
func (k kind) forked() map[string]int {
	return map[string]int{floorHTTP: 1, floorSocket: 1, k.fork: 1}
}

// scenarios are the rows of the goals, and those of bash.
var scenarios = slices.Concat(
	[]scenario{
		{
			figures: []figure{{
				name: "plain: print, pool empty, whole", unit: milliseconds, contains: plain.forked(),
				goals: goals{"process": atMost(6)},
			}},
			empty: true, share: 1, measure: printing,
		},
		{
			figures: []figure{{
				name: "plain: print, whole", unit: milliseconds, contains: fromPool(),
				goals: goals{"process": atMost(2), "docker": atMost(3)},
			}},
			share: 1, measure: printing,
		},
	},
	plain.scenarios(),
	plain.memory("private memory of a paused execution", "", true, goals{"process": atMost(4)}),
	plain.memory("private memory, sandbox from the pool", "", false, goals{"process": atMost(4)}),
	[]scenario{
		{
			figures: []figure{{
				name: "scientific: first call, pool empty", unit: milliseconds, contains: scientific.forked(),
				goals: goals{"process": atMost(12)},
			}},
			empty: true, share: 1, measure: firstCall(python, scientific.mark+"print(await lookup(n=1))", "None\n"),
		},
		{
			figures: []figure{{
				name: "scientific: first call, program uses pandas", unit: milliseconds, contains: fromPool(),
				goals: goals{"process": atMost(6), "docker": atMost(6)},
			}},
			share: 1, measure: firstCall(python, pandas+"await lookup(n=1)\nprint(1)", "1\n"),
		},
	},
	scientific.scenarios(),
	scientific.memory("private memory of a paused execution", scientific.mark, true, nil),
	scientific.memory("private memory, sandbox from the pool", scientific.mark, false, nil),
	scientific.memory("private memory, program uses pandas", pandas, false, nil),
	bashScenarios,
)

// scenarios returns what is measured in both kinds of sandboxes.
func (k kind) scenarios() []scenario {
	return []scenario{
		{
			figures: []figure{{
				name: k.name + ": first call", unit: milliseconds, contains: fromPool(),
				goals: goals{"process": atMost(k.firstCall), "docker": atMost(3)},
			}},
			share: 1, measure: firstCall(python, k.mark+"print(await lookup(n=1))", "None\n"),
		},
		{
			figures: []figure{
				{
					name: k.name + ": one round", unit: milliseconds, contains: fromPool(),
					goals: goals{"process": atMost(0.55), "docker": atMost(1)},
				},
				{
					name: k.name + ": 20 sequential rounds, whole", unit: milliseconds,
					contains: map[string]int{floorHTTP: sequential + 1, floorSocket: sequential + 1},
					goals:    goals{"process": atMost(16), "docker": atMost(25)},
				},
			},
			share: 4,
			measure: func(ctx context.Context, s subject) ([][]float64, error) {
				return s.rounds(ctx, python, k.mark+sequentialProgram, "40\n")
			},
		},
		{
			figures: []figure{{
				name: k.name + ": gather of 10, whole", unit: milliseconds,
				contains: map[string]int{floorHTTP: 2, floorSocket: 2},
				goals:    goals{"process": atMost(4.5), "docker": atMost(5)},
			}},
			share: 1,
			measure: sideBySide(10, python, k.mark+"print(await asyncio.gather(*(lookup(n=n) for n in range(10))))",
				"[1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"),
		},
		{
			figures: []figure{{
				name: k.name + ": 1 MiB result in", unit: milliseconds,
				contains: map[string]int{floorHTTP1: 1, floorSocket1: 1},
				goals:    goals{"process": atMost(9), "docker": atMost(10)},
			}},
			share: 5, measure: resultIn(k.mark, oneMiB),
		},
		{
			figures: []figure{{
				name: k.name + ": 10 MiB result in", unit: milliseconds,
				contains: map[string]int{floorHTTP10: 1, floorSocket10: 1},
				goals:    goals{"process": atMost(60), "docker": atMost(80)},
			}},
			share: 10, measure: resultIn(k.mark, tenMiB),
		},
		{
			figures: []figure{{
				name: k.name + ": new pauses, 16 clients", unit: perSecond, contains: k.forked(),
				goals: goals{"process": atLeast(k.pauses)},
			}},
			measure: func(ctx context.Context, s subject) ([][]float64, error) {
				rate, _, err := s.load(ctx, 16, 10*s.n, func() (time.Duration, error) {
					first, last, err := s.paused(ctx, python, k.mark+"print(await lookup(n=1))", "7\n", json.RawMessage("7"))
					return first + last, err
				})
				return [][]float64{{rate}}, err
			},
		},
	}
}

// memory returns the scenario of paused executions of programs that run code first.
func (k kind) memory(name, code string, empty bool, g goals) []scenario {
	return []scenario{{
		figures: []figure{{name: k.name + ": " + name, unit: mebibytes, goals: g}},
		empty:   empty, once: true,
		measure: func(ctx context.Context, s subject) ([][]float64, error) { return s.memory(ctx, code) },
	}}
}

// bashScenarios are the rows of programs in bash.
var bashScenarios = []scenario{
	{
		figures: []figure{{name: "bash: first call", unit: milliseconds, goals: goals{"process": atMost(8)}}},
		share:   2,
		measure: firstCall(bash, `lookup '{"n":1}'`, "null\n"),
	},
	{
		figures: []figure{
			{name: "bash: one round", unit: milliseconds, goals: goals{"process": atMost(1.2)}},
			{name: "bash: 20 sequential rounds, whole", unit: milliseconds},
		},
		share: 10,
		measure: func(ctx context.Context, s subject) ([][]float64, error) {
			code := fmt.Sprintf(`for ((n = 0; n < %d; n++)); do lookup "{\"n\":$n}" >/dev/null; done; echo $n`, sequential)
			return s.rounds(ctx, bash, code, "20\n")
		},
	},
	{
		figures: []figure{{name: "bash: 5 side by side, whole", unit: milliseconds, goals: goals{"process": atMost(12)}}},
		share:   2,
		measure: sideBySide(5, bash, `for n in {0..4}; do lookup "{\"n\":$n}" & done; wait`, "1\n1\n1\n1\n1\n"),
	},
}

// loads are scenarios that only a comparison measures, since their figures say little without
// those of another server: clients that start a program as soon as their last one has ended,
// and the processor time of a round.
var loads = []scenario{
	{
		figures: []figure{{name: "plain: one round: processor time", unit: milliseconds}},
		measure: func(ctx context.Context, s subject) ([][]float64, error) {
			each, err := s.roundsOnProcessor(ctx)
			return [][]float64{each}, err
		},
	},
	plain.sustained(1, 2, "sustained", ""),
	plain.sustained(8, 6, "sustained", ""),
	plain.sustained(64, 16, "sustained", ""),
	scientific.sustained(1, 2, "sustained pandas", pandas),
	scientific.sustained(8, 6, "sustained pandas", pandas),
	scientific.sustained(64, 16, "sustained pandas", pandas),
}

// sustained returns the scenario of clients that run n times scale programs.
func (k kind) sustained(clients, scale int, what, code string) scenario {
	name := fmt.Sprintf("%s: %s, %d clients", k.name, what, clients)
	if clients == 1 {
		name = fmt.Sprintf("%s: %s, 1 client", k.name, what)
	}
	return scenario{
		figures: []figure{
			{name: name + ": executions", unit: perSecond},
			{name: name + ": p50", unit: milliseconds},
			{name: name + ": p99", unit: milliseconds},
			{name: name + ": processor time of each", unit: milliseconds},
		},
		measure: func(ctx context.Context, s subject) ([][]float64, error) {
			return s.sustained(ctx, clients, scale*s.n, code)
		},
	}
}
