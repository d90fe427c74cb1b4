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

// A stretch is the program's part in a segment: it is set going, runs, and comes to rest.
type stretch struct {
	id           string
	sandbox      *sandbox.Conn
	conversation *conversation
	counted      *quota.Share
	checker      *checker
	dispatcher   *core.Dispatcher
	crew         *crew
	files        Files
	log          *slog.Logger
	// until is when the program has run for its whole budget.
	until time.Time
	// later are events that came while a file was placed, and are to be heard yet.
	later []sandbox.Event
}

// run sets the program going with d, waits until it comes to rest, and collects the files of a
// program that has ended.
func (s *stretch) run(d delivery) core.Ending {
	began := time.Now()
	budget := s.conversation.budget()
	timer := time.NewTimer(budget)
	defer timer.Stop()
	s.until = began.Add(budget)
	e, rested := s.receive(d)
	if !rested {
		e = s.wait(d, timer.C)
	}
	s.crew.stop()
	e.Rested = time.Now()
	e.Ran = min(e.Rested.Sub(began), budget)
	if e.State.Terminal() {
		s.collect(&e)
	}
	return e
}

// collect adds to e the files that a program has left in its workspace, and what has become of the
// outputs of its contract. Every process of the program is dead by then.
func (s *stretch) collect(e *core.Ending) {
	record := s.conversation.copy()
	contract, err := core.ContractOf(record)
	if err != nil {
		s.log.Warn("cannot read which files a program must produce", "execution", s.id, "err", err)
	}
	hasFiles := e.LeftFiles || len(record.Inputs) > 0 || len(record.Handed) > 0
	if e.Printed != nil && hasFiles && s.files != nil && s.conversation.owned() {
		c := collection{
			sandbox: s.sandbox, store: s.files, log: s.log, record: record, inputs: map[string]*core.InputFile{},
			wanted: contract.Files(), found: map[string]outputs.Found{},
		}
		c.collect(e)
	}
	core.Judge(e, contract)
}

// wait delivers d and returns how the program came to rest: it paused, ended, or was killed.
func (s *stretch) wait(d delivery, timeout <-chan time.Time) core.Ending {
	if err := d.to(s.sandbox); err != nil {
		return s.sandboxLost(s.sandbox.Err())
	}
	unpublished := time.NewTimer(publishAfter)
	defer unpublished.Stop()
	soon := false // whether unpublished runs for output
	for {
		for len(s.later) > 0 {
			next := s.later[0]
			s.later = s.later[1:]
			if e, rested := s.hear(next); rested {
				return e
			}
		}
		select {
		case event, ok := <-s.sandbox.Events():
			if !ok {
				return s.sandboxLost(s.sandbox.Err())
			}
			if output, ok := event.(sandbox.Output); ok {
				if s.conversation.chronicle.noteOutput(output) && !soon {
					unpublished.Reset(publishOutput)
					soon = true
				}
			} else if e, rested := s.hear(event); rested {
				return e
			}
		case done := <-s.crew.done:
			if e, rested := s.served(done); rested {
				return e
			}
			if !soon {
				unpublished.Reset(publishResults)
			}
		case <-s.crew.wake:
			if e, rested := s.goOn(true); rested {
				return e
			}
		case <-unpublished.C:
			soon = false
			s.conversation.publisher.publish()
		case <-timeout:
			return s.timedOut()
		case <-s.conversation.cancelled:
			return s.kill(core.Ending{State: core.Cancelled})
		case <-s.conversation.left:
			return core.Ending{State: core.Cancelled}
		}
	}
}

// sandboxLost returns the ending of a program whose sandbox has gone, or does not read what it
// is sent. err is why the stream has ended, or nil if that is not known.
func (s *stretch) sandboxLost(err error) core.Ending {
	if errors.Is(err, sandbox.ErrOutOfMemory) {
		return core.Fail(core.OutOfMemory, "", 0)
	}
	logSandboxLost(s.log, s.conversation.copy(), err)
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

// hear handles one event of a running program. It reports whether the program has come to rest.
func (s *stretch) hear(event sandbox.Event) (e core.Ending, rested bool) {
	switch event := event.(type) {
	case *sandbox.Calls:
		s.conversation.rest()
		return s.rest(event)
	case sandbox.Exit:
		return core.Exited(event), true
	case sandbox.Ran:
		s.conversation.spend(event.Time)
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
	e.Partial = s.conversation.chronicle.partial()
	e.Held = e.Size + e.Partial.Size()
	err := s.counted.Hold(e.Held)
	if err != nil && e.Held > e.Size {
		e.Partial, e.Held = core.Partial{}, e.Size
		err = s.counted.Hold(e.Held)
	}
	return err
}

// timedOut kills a program whose run budget is spent, and tells where it stood.
func (s *stretch) timedOut() core.Ending {
	e := s.kill(core.Ending{State: core.TimedOut})
	what := "The program ran"
	if s.conversation.o.WallClock {
		what = "The program and its pauses lasted"
	}
	e.Detail = fmt.Sprintf("%s for its whole timeout of %d ms", what, s.conversation.copy().Budget.Milliseconds())
	if e.Line > 0 {
		e.Detail += fmt.Sprintf(" and was stopped at line %d", e.Line)
	}
	return e
}

// killTimeout is how long a sandbox may take to report the exit of a program that it was told to
// kill. After that the sandbox is destroyed, and the output of the program is lost.
const killTimeout = 3 * time.Second

// kill has the sandbox kill the program, and returns e with the program's output.
func (s *stretch) kill(e core.Ending) core.Ending {
	if !s.conversation.owned() {
		return e
	}
	kill := s.sandbox.Kill
	if e.State == core.TimedOut {
		kill = s.sandbox.KillAndTell
	}
	if err := kill(); err != nil {
		return e
	}
	timer := time.NewTimer(killTimeout)
	defer timer.Stop()
	for {
		select {
		case event, ok := <-s.sandbox.Events():
			if !ok {
				return e
			}
			if exit, ok := event.(sandbox.Exit); ok {
				return e.With(exit)
			}
		case <-timer.C:
			return e
		}
	}
}

// A delivery is what sets a program going: the program itself, or the results of its calls. The
// zero value is for a program that runs already.
type delivery struct {
	program *sandbox.Program
	results []sandbox.Result // not nil, even if there are none
	// handed are those of the results that hand files over.
	handed []core.Handing
}

// to sends the delivery to a sandbox.
func (d delivery) to(c *sandbox.Conn) error {
	switch {
	case d.program != nil:
		return c.Run(*d.program)
	case d.results != nil:
		return c.Resume(d.results)
	}
	return nil
}
