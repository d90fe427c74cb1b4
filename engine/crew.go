package engine

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
	"fermata/engine/sandbox"
	"fermata/engine/tools"
	"fermata/engine/tools/envelope"
	"fermata/engine/tools/source"
)

// A crew runs the server's calls of one program, and keeps their results until the program takes them.
// The execution's goroutine uses it; each call has a goroutine of its own, which ends with stop at the
// latest.
type crew struct {
	principal, execution string
	mandate              *mandate
	// depth is the number of toolsets through which the request that started the program has come.
	depth   int
	caller  *caller
	ctx     context.Context //nolint:containedctx // calls end with the stretch, and no request
	cancel  context.CancelFunc
	working sync.WaitGroup
	// running are the calls that run, by their numbers. ready are the calls whose results wait for the
	// program. done gets each call that has ended.
	running map[int]*served
	ready   map[int]*served
	done    chan *served
	// resting is true while the program waits for results, and awaited has the numbers of the calls for
	// which it waits.
	resting bool
	awaited map[int]bool
	// wake fires when a timer of the program is due. It is nil while the program does not rest, has no
	// timer, or waits for its client as well: then its timers stand still.
	wake <-chan time.Time
}

// A served is a call that the server runs.
type served struct {
	call  continuation.Call
	tool  core.GrantedTool
	input json.RawMessage
	// held is how many bytes of the quota the call holds while it runs.
	held int64
	// givenUp is true if the program does not wait for the call any more, and the journal has that. again is true if the
	// call had ended before, and the journal has that.
	givenUp, again bool
	// output is the result. If the call has failed, message says why, and unknown is true if the call may
	// have taken effect.
	output json.RawMessage
	// envelope is true if the result came in an envelope. Such a result may hand files over; then size is
	// the number of its bytes with the files.
	envelope bool
	size     int64
	message  string
	unknown  bool
	// details are what the tool's envelope says about a failure beyond the message, or nil if it came
	// without an envelope.
	details *envelope.Details
}

// Has reports whether a call runs, or has a result that waits for the program.
func (w *crew) Has(number int) bool { return w.running[number] != nil || w.ready[number] != nil }

// Size returns how many calls run.
func (w *crew) Size() int { return len(w.running) }

// idle reports whether no call runs and no result waits.
func (w *crew) idle() bool { return len(w.running)+len(w.ready) == 0 }

// Lanes returns the lanes in which calls of the program run.
func (w *crew) Lanes() map[string]bool {
	busy := map[string]bool{}
	for _, s := range w.running {
		if s.tool.Lane != "" {
			busy[s.tool.Lane] = true
		}
	}
	return busy
}

// begin runs the calls of a plan, which are recorded, and notes the failures of those that fail at once.
func (w *crew) begin(p core.Plan) {
	for _, b := range p.Begin {
		s := &served{call: b.Entry, tool: b.Granted, input: json.RawMessage(b.Input), message: b.Refusal, again: b.Ended, held: int64(cap(b.Input)) + core.CallOverhead}
		if s.message != "" {
			w.ready[b.Number] = s
			continue
		}
		w.running[b.Number] = s
		w.working.Go(func() {
			w.run(s)
			select {
			case w.done <- s:
			case <-w.ctx.Done():
			}
		})
	}
}

// run makes one call.
func (w *crew) run(s *served) {
	result, made, err := w.caller.call(w.ctx, w.mandate.grant, charge{w.principal, s.tool.Lane, s.call.Cost}, tools.Request{
		Toolset: s.tool.Toolset, Tool: s.tool.Tool, Input: s.input, Key: journal.CallKey(w.execution, s.call.ID), Depth: w.depth,
	})
	failed, known := errors.AsType[*source.CallError](err)
	switch {
	case err == nil:
		s.output, s.envelope = result.Output, result.Envelope
	case !made:
		s.message = err.Error()
	case known:
		s.message, s.unknown, s.details = failed.Message, failed.Unknown, failed.Details
	default:
		s.message, s.unknown = "the call has failed", true
	}
}

// end moves a call that has ended to those whose results wait for the program.
func (w *crew) end(s *served) {
	delete(w.running, s.call.Number)
	w.ready[s.call.Number] = s
}

// rest notes that the program waits for calls, and after which time a timer of its own is due, or 0.
func (w *crew) rest(awaited map[int]bool, wakes time.Duration) {
	w.resting, w.awaited, w.wake = true, awaited, nil
	if wakes > 0 {
		w.wake = time.After(wakes)
	}
}

// giveUp returns the calls that run, and that the program has given up since giveUp was called last.
func (w *crew) giveUp(awaited map[int]bool) []*served {
	var found []*served
	for number, s := range w.running {
		if !awaited[number] && !s.givenUp {
			s.givenUp = true
			found = append(found, s)
		}
	}
	return found
}

// results returns the results that the program gets now, and whether it goes on. While none of the results
// for which the program waits has arrived, and a call still runs, it gets none: it would only make its calls
// again. That holds also if the program has given that call up, since the calls for which it waits may be queued
// behind it. If a timer of the program is due, it goes on without results.
func (w *crew) results(due bool) (results []sandbox.Result, now bool) {
	if !w.resting {
		return nil, false
	}
	results = []sandbox.Result{}
	for number, s := range w.ready {
		if w.awaited[number] {
			results = append(results, s.result())
		}
		delete(w.ready, number) // A result for which the program does not wait any more is dropped.
	}
	if len(w.running) > 0 && len(results) == 0 && !due {
		return nil, false
	}
	if w.wake != nil {
		results = append(results, sandbox.Result{}) // The time counts for the timers of the program.
	}
	w.resting, w.wake = false, nil
	return results, true
}

// result returns the result in the form for the sandbox.
func (s *served) result() sandbox.Result {
	if s.message == "" {
		return sandbox.Result{Number: s.call.Number, Value: s.output}
	}
	return sandbox.Result{Number: s.call.Number, Value: core.Quoted(s.message), Failed: true, About: core.AboutOf(s.details)}
}

// stop ends all calls and waits until they have ended.
func (w *crew) stop() {
	if w != nil {
		w.cancel()
		w.working.Wait()
	}
}
