package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// one returns the samples of a measurement that gives a single sample of a single figure.
func one(took time.Duration) [][]float64 { return [][]float64{{inMilliseconds(took)}} }

// whole runs a program that calls no tools and prints stdout.
func (s subject) whole(ctx context.Context, code, stdout string) (time.Duration, error) {
	a, err := s.client.start(ctx, python, code)
	return a.took, errors.Join(err, a.completed(stdout))
}

// printing measures a program that prints a word and ends.
func printing(ctx context.Context, s subject) ([][]float64, error) {
	took, err := s.whole(ctx, "print('hello')", "hello\n")
	return one(took), err
}

// paused runs a program that calls lookup(n=1) once, gets value and prints stdout. It
// returns how long the server took for each of the two answers.
func (s subject) paused(ctx context.Context, lang, code, stdout string, value json.RawMessage) (first, last time.Duration, err error) {
	pause, err := s.client.start(ctx, lang, code)
	if err := errors.Join(err, pause.paused(1, 1)); err != nil {
		return 0, 0, err
	}
	end, err := s.client.resume(ctx, pause, value)
	return pause.took, end.took, errors.Join(err, end.completed(stdout))
}

// firstCall measures the start of such a program up to its pause.
func firstCall(lang, code, stdout string) func(context.Context, subject) ([][]float64, error) {
	return func(ctx context.Context, s subject) ([][]float64, error) {
		first, _, err := s.paused(ctx, lang, code, stdout, nil)
		return one(first), err
	}
}

// resultIn measures a continuation that brings a large result, up to the end of the program.
func resultIn(mark string, large payload) func(context.Context, subject) ([][]float64, error) {
	code := mark + "texts = await lookup(n=1)\nprint(len(texts), sum(map(len, texts)))"
	stdout := fmt.Sprintf("%d %d\n", large.length, large.characters)
	return func(ctx context.Context, s subject) ([][]float64, error) {
		_, last, err := s.paused(ctx, python, code, stdout, large.json)
		return one(last), err
	}
}

// sequential is how many rounds a program may have by default, and how many the rows of
// rounds have.
const sequential = 20

var sequentialProgram = fmt.Sprintf("total = 0\nfor n in range(%d):\n    total += await lookup(n=n)\nprint(total)", sequential)

// rounds runs a program of sequential calls and answers each of them with 2. It returns how
// long each round took, and how long the whole program took.
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
	// The last continuation is not a round, since the program ends.
	return [][]float64{rounds[:sequential-1], {inMilliseconds(whole)}}, nil
}

// roundsOnProcessor runs n programs of sequential calls and returns for each of them the
// processor time of one round.
func (s subject) roundsOnProcessor(ctx context.Context) (each []float64, err error) {
	for range s.n {
		// The server must do nothing but the rounds meanwhile, so its pool is filled first.
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

// sideBySide measures a program that makes several calls at the same time. Each gets 1.
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

// sustained has clients run total programs, which run code and print a word.
func (s subject) sustained(ctx context.Context, clients, total int, code string) ([][]float64, error) {
	before, err := s.processor()
	if err != nil {
		return nil, err
	}
	rate, took, err := s.load(ctx, clients, total, func() (time.Duration, error) {
		return s.whole(ctx, code+"print('hello')", "hello\n")
	})
	// The server makes sandboxes for its pool in place of those that were used. The time that
	// this takes belongs to the load.
	if err := errors.Join(err, s.rest(ctx)); err != nil {
		return nil, err
	}
	after, err := s.processor()
	each := inMilliseconds(after-before) / float64(len(took))
	return [][]float64{{rate}, {quantile(took, 0.5)}, {quantile(took, 0.99)}, {each}}, err
}

// load has clients run total programs. Each client starts the next program as soon as its
// last one has ended. load returns how many programs ended in a second, and how many
// milliseconds each of them took, the fastest first.
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

// A payload is a large result: a list of texts.
type payload struct {
	json []byte
	// length is the length of the list, characters the length of all texts together.
	length, characters int
}

var oneMiB, tenMiB = texts(1 << 20), texts(10 << 20)

// texts returns a list of texts of a thousand characters each, about size bytes of JSON in all.
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

// wait returns when the time d is over.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
