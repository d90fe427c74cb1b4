package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"fermata/engine/core"
	"fermata/engine/outputs"
	"fermata/engine/quota"
	"fermata/engine/sandbox"
)

const (
	// publishAfter is how long the first event of an execution may wait for a write to the store.
	publishAfter = 50 * time.Millisecond
	// publishOutput is how long output waits for a write to the store: long enough for the calls
	// that often follow it, whose pause is written together with it.
	publishOutput = time.Millisecond
)

// A stretch is the program's part in a segment: it is set going, runs, and comes to rest.
type stretch struct {
	*life
	dispatcher *core.Dispatcher
	// later are events that came while a file was placed, and are to be heard yet.
	later []sandbox.Event
	// soon is true while output waits for the publisher.
	soon bool
}

func newStretch(l *life) *stretch {
	ctx, cancel := context.WithCancel(context.Background())
	l.crew = &crew{
		principal: l.principal, execution: l.id, mandate: l.mandate, depth: l.c.record.Depth, caller: l.caller, ctx: ctx, cancel: cancel,
		running: map[int]*served{}, ready: map[int]*served{}, done: make(chan *served),
	}
	return &stretch{life: l, dispatcher: &core.Dispatcher{
		Granted: l.mandate.Granted, Places: l.places, MaxCalls: l.checker.maxCalls,
		Work: l.crew, Approve: l.mandate.approval, Ask: l.counted.Ask,
	}}
}

// run sets the program going with d, waits until it comes to rest, and collects the files of a
// program that has ended.
func (s *stretch) run(d delivery) core.Ending {
	began := time.Now()
	budget := budgetOf(s.c.o, s.c.record)
	s.limit.set(budget)
	s.running = true
	e, rested := keeper{s}.receive(d)
	if !rested {
		e = s.wait(d)
	}
	s.running = false
	s.limit.off()
	s.publisher.off()
	s.crew.stop()
	s.crew = nil
	e.Rested = time.Now()
	e.Ran = min(e.Rested.Sub(began), budget)
	if e.State.Terminal() {
		s.mute = true
		s.collect(&e)
	}
	return e
}

// collect adds to e the files that a program has left in its workspace, and what has become of the
// outputs of its contract. Every process of the program is dead by then.
func (s *stretch) collect(e *core.Ending) {
	record := s.c.record
	contract, err := core.ContractOf(record)
	if err != nil {
		s.log.Warn("cannot read which files a program must produce", "execution", s.id, "err", err)
	}
	hasFiles := e.LeftFiles || len(record.Inputs) > 0 || len(record.Handed) > 0
	if e.Printed != nil && hasFiles && s.files != nil && s.c.owned() {
		c := collection{
			sandbox: s.sandbox, store: s.files, log: s.log, record: record, inputs: map[string]*core.InputFile{},
			wanted: contract.Files(), found: map[string]outputs.Found{},
		}
		_ = s.do(func() error { // It has logged its errors.
			c.collect(e)
			return nil
		})
	}
	core.Judge(e, contract)
}

// wait delivers d and returns how the program came to rest: it paused, ended, or was killed.
func (s *stretch) wait(d delivery) core.Ending {
	if s.doomed == nil {
		if err := d.to(s.sandbox); err != nil {
			return s.sandboxLost(s.sandbox.Err())
		}
	}
	s.publisher.set(publishAfter)
	for {
		if e, rested := s.hearNext(); rested {
			return e
		}
	}
}

// hearNext waits for one input of a running program. It reports whether the program has come to rest.
func (s *stretch) hearNext() (core.Ending, bool) {
	switch {
	case s.c.standing == core.StandsLost:
		return core.Ending{State: core.Cancelled}, true
	case s.doomed != nil:
		return s.die(*s.doomed), true
	case len(s.later) > 0:
		event := s.later[0]
		s.later = s.later[1:]
		return s.hear(event)
	}
	switch in := s.next(fromSandbox | fromCrew | fromProgram | fromRequest | fromErrand | fromPublisher | fromCancel | fromLimit); in.from {
	case fromCrew:
		e, rested := s.served(in.call)
		if !rested && !s.soon {
			s.publisher.set(publishResults)
		}
		return e, rested
	case fromProgram:
		return s.goOn(true)
	case fromRequest:
		s.serve(in)
	case fromErrand:
		s.conclude()
	case fromPublisher:
		s.soon = false
		s.catchUp()
	case fromCancel:
		return s.die(core.Ending{State: core.Cancelled}), true
	case fromLimit:
		return s.die(core.Ending{State: core.TimedOut}), true
	default:
		return s.hear(in.event)
	}
	return core.Ending{}, false
}

// sandboxLost returns the ending of a program whose sandbox has gone, or does not read what it
// is sent. err is why the stream has ended, or nil if that is not known.
func (s *stretch) sandboxLost(err error) core.Ending {
	if errors.Is(err, sandbox.ErrOutOfMemory) {
		return core.Fail(core.OutOfMemory, "", 0)
	}
	logSandboxLost(s.log, s.c.record, err)
	return core.Fail(core.SandboxLost, "", 0)
}

// broken kills a program whose sandbox has sent something that breaks the protocol. If the
// worker has sent it, the program counts as failed; if the supervisor has, the sandbox as lost.
func (s *stretch) broken(b sandbox.Broken) core.Ending {
	if stored, ok := errors.AsType[*quota.StoredError](b.Err); ok {
		return s.kill(core.Fail(core.TooMuchStored, "", int(stored.Max)))
	}
	level, reason := slog.LevelWarn, core.SandboxLost
	if b.ByProgram {
		level, reason = slog.LevelInfo, core.ProtocolBroken
	}
	s.log.Log(context.Background(), level, "a sandbox broke the protocol", "execution", s.id, "reason", reason, "err", b.Err)
	return s.kill(core.Fail(reason, "", 0))
}

// hear handles one event of a running program, nil if its sandbox has gone. It reports whether the program has come to
// rest.
func (s *stretch) hear(event sandbox.Event) (e core.Ending, rested bool) {
	switch event := event.(type) {
	case nil:
		return s.sandboxLost(s.sandbox.Err()), true
	case sandbox.Output:
		if s.c.chronicle.noteOutput(event) && !s.soon {
			s.publisher.set(publishOutput)
			s.soon = true
		}
		return core.Ending{}, false
	case *sandbox.Calls:
		s.c.rests++
		return s.rest(event)
	case sandbox.Exit:
		return core.Exited(event), true
	case sandbox.Ran:
		s.c.spend(event.Time)
		return core.Ending{}, false
	case sandbox.Stopped:
		if !s.crew.resting {
			return s.broken(sandbox.Broken{Err: errors.New("a running program has stopped")}), true
		}
		return core.Ending{}, false // A part of it ran while it waited for the server.
	case sandbox.Broken:
		return s.broken(event), true
	default:
		return s.broken(sandbox.Broken{Err: fmt.Errorf("%T of a running program", event)}), true
	}
}

// rested returns how a program that has come to rest goes on: it pauses, or it is killed because of what
// it has sent.
func (s *stretch) rested(e core.Ending, err error) core.Ending {
	if err == nil && e.State == core.Paused {
		err = s.hold(&e)
	}
	switch {
	case err != nil:
		return s.broken(sandbox.Broken{Err: err, ByProgram: true})
	case e.State == core.Failed:
		return s.kill(e)
	}
	return e
}

// hold counts what a pause stores for its principal. If there is no room for what the program has
// printed so far, the client is told of it at the end.
func (s *stretch) hold(e *core.Ending) error {
	e.Partial = s.c.chronicle.partial()
	e.Held = e.Size + e.Partial.Size()
	err := s.counted.Hold(e.Held)
	if err != nil && e.Held > e.Size {
		e.Partial, e.Held = core.Partial{}, e.Size
		err = s.counted.Hold(e.Held)
	}
	return err
}

// die kills a program that is cancelled, or whose run budget is spent, and tells where it stood.
func (s *stretch) die(e core.Ending) core.Ending {
	if e = s.kill(e); e.State != core.TimedOut {
		return e
	}
	what := "The program ran"
	if s.c.o.WallClock {
		what = "The program and its pauses lasted"
	}
	e.Detail = fmt.Sprintf("%s for its whole timeout of %d ms", what, s.c.record.Budget.Milliseconds())
	if e.Line > 0 {
		e.Detail += fmt.Sprintf(" and was stopped at line %d", e.Line)
	}
	return e
}
