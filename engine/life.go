package engine

import (
	"cmp"
	"log/slog"
	"time"

	"fermata/engine/cluster"
	"fermata/engine/core"
	"fermata/engine/quota"
	"fermata/engine/sandbox"
)

// attachTimeout bounds a take-over, and how long the sandbox may take to answer in it.
const attachTimeout = 10 * time.Second

// A life is the goroutine of an execution, which alone speaks to the sandbox and changes the record.
// It runs the program, from pause to pause, and waits in loop.next only.
type life struct {
	*execution
	loop
	c       *conversation
	pool    *sandbox.Pool // of the sandbox
	members *cluster.Member
	checker *checker
	// mandate is what the program may call beyond plain tools of its client.
	mandate *mandate
	caller  *caller
	places  int
	files   Files
	log     *slog.Logger
	// counted is the execution's share of its principal's quota, and stored is how many bytes it holds for the latest
	// pause.
	counted *quota.Share
	stored  int64
	// running is true while the program runs, and its budget is counted. mute is true while nothing can be told to the
	// sandbox: the program has not begun, or has ended.
	running, mute bool
	// restedAt is when the program last came to rest.
	restedAt time.Time
	// flooded is how the program has ended in its pause, if it had printed too much.
	flooded *core.Ending
	// doomed is why the program has to die, and killed tells whether the sandbox was told so.
	doomed *core.Ending
	killed bool
}

func (m *common) newLife(x *execution, counted *quota.Share, d *mandate) *life {
	l := &life{
		execution: x,
		loop:      loop{asks: x.asks, cancelled: x.cancelled, errands: x.conversation.errands},
		c:         x.conversation,
		pool:      m.pool,
		members:   m.members,
		checker:   m.checker,
		mandate:   d,
		caller:    &m.caller,
		places:    cmp.Or(m.o.ToolConcurrency, defaultPlaces),
		files:     m.o.Files,
		log:       m.o.Log,
		counted:   counted,
	}
	if x.sandbox != nil {
		l.events = x.sandbox.Events()
	}
	l.wait = l.await
	return l
}

// defaultPlaces is how many calls the server runs at the same time for one execution unless its
// settings say otherwise.
const defaultPlaces = 16

// live runs the program to the end of the execution, and answers each segment. d sets the
// first segment going.
func (l *life) live(d delivery) {
	defer l.end()
	for {
		goesOn := l.settle(l.run(d))
		// Let the pool refill only now, after the answer has been sent: making a sandbox
		// competes with it for the processor.
		l.pool.Running(-1)
		if !goesOn {
			return
		}
		var ok bool
		if d, ok = (&pausing{life: l}).claimed(); !ok {
			return
		}
	}
}

// relive continues an execution after a take-over, from where it stands.
func (l *life) relive(at core.Standing) {
	switch {
	case at == core.StandsRunning:
		l.live(delivery{})
		return
	case at == core.StandsPaused && !inItsPause(l.sandbox.Hello, l.c.record):
		l.leave(core.Expired, core.PauseUnclaimed)
	default:
		l.skipRepeated()
		if d, ok := l.c.redeliver(); ok {
			l.live(d)
			return
		}
		if d, ok := (&pausing{life: l}).claimed(); ok {
			l.live(d)
			return
		}
	}
	l.end()
}

// skipRepeated drops the calls that the supervisor of a paused program repeats after a
// take-over. The record has them already, and they must not count as those of the next pause.
func (l *life) skipRepeated() {
	if l.sandbox.Hello.State != sandbox.Paused {
		return
	}
	l.patience.set(attachTimeout)
	defer l.patience.off()
	for {
		in := l.next(fromSandbox | fromPatience | fromCancel)
		if output, ok := in.event.(sandbox.Output); ok {
			// It comes again, too, before the calls. Some of it the former server has not seen.
			if l.c.chronicle.noteOutput(output) {
				l.catchUp()
			}
			continue
		}
		if calls, ok := in.event.(*sandbox.Calls); ok {
			calls.Release()
		}
		return
	}
}

// end gives back what the execution holds: its sandbox and its share of the quota. Then it writes the record of an end
// that the store did not accept, as soon as the store is back. Until then the execution answers retries. It
// gives up when the answer need not be kept any longer, or the execution was cancelled.
func (l *life) end() {
	l.mute = true
	l.mandate.release()
	l.counted.Drop()
	if l.c.owned() {
		l.pool.Release(l.sandbox)
	} else {
		l.pool.Abandon(l.sandbox)
	}
	for until := time.Now().Add(l.c.o.KeepAnswers); time.Now().Before(until) && l.c.save() != nil; {
		l.patience.set(saveRetry)
		switch in := l.next(fromRequest | fromPatience | fromCancel); in.from {
		case fromRequest:
			l.serve(in)
		case fromCancel:
			until = time.Now()
		default: // It is time for another attempt.
		}
	}
	l.quiet()
}

// run runs the program until it comes to rest again. d sets it going.
func (l *life) run(d delivery) core.Ending {
	l.pool.Running(1)
	l.counted.Run()
	l.counted.Release(l.stored)
	if l.flooded != nil {
		return *l.flooded // The results that the claim has brought come too late for the program.
	}
	e := newStretch(l).run(d)
	l.restedAt, l.stored = e.Rested, e.Held
	return e
}

// settle answers the request of the segment that has come to rest. It reports whether the
// execution goes on, paused.
func (l *life) settle(e core.Ending) bool {
	// The quota first: a client that has the answer may start another execution at once.
	if e.State == core.Paused {
		l.counted.Pause()
	} else {
		l.counted.Drop()
	}
	return l.c.settle(e)
}

// leave ends the execution in its pause. why tells what for.
func (l *life) leave(to core.State, why string) {
	// What the pause has stored leaves room for the answer.
	l.counted.Release(l.stored)
	l.stored = 0
	l.c.leave(to, why)
}

// serve does what a request asks for, when nothing else is under way.
func (l *life) serve(in input) {
	l.quiet()
	in.ask()
}

// catchUp begins to write what the journal has noted. If more is noted meanwhile, or the store is away, another write
// follows.
func (l *life) catchUp() {
	l.c.catchUp(func(err error) {
		switch {
		case err != nil:
			l.publisher.set(saveRetry)
		case l.c.chronicle.Waits():
			l.publisher.set(publishOutput)
		}
	})
}

// await waits until an errand is done. If it learns that the program has to die, it sees to that at once. It reports
// false if the errand has no answer in time.
func (l *life) await(e *errand) bool {
	heard := fromErrand
	if e.patience > 0 {
		l.patience.set(e.patience)
		defer l.patience.off()
		heard |= fromPatience
	}
	for {
		more := heard
		if l.doomed == nil && !l.mute {
			more |= fromCancel
			if l.running {
				more |= fromLimit
			}
		}
		switch in := l.next(more); in.from {
		case fromErrand:
			return true
		case fromPatience:
			return false
		case fromCancel:
			l.doom(e, core.Cancelled)
		default:
			l.doom(e, core.TimedOut)
		}
	}
}

// doom notes that the program has to die while an errand is under way. An errand that reads from the sandbox is
// stopped; otherwise the sandbox is told at once.
func (l *life) doom(e *errand, to core.State) {
	l.doomed = &core.Ending{State: to}
	switch {
	case e.stop != nil:
		e.stop()
	case l.members.Holds():
		l.killed = l.tellKill(to) == nil
	}
}

// tellKill has the sandbox kill the program. Its Exit tells what the program has printed, and if its time is over, where
// it stood.
func (l *life) tellKill(to core.State) error {
	if to == core.TimedOut {
		return l.sandbox.KillAndTell()
	}
	return l.sandbox.Kill()
}

// killTimeout is how long a sandbox may take to report the exit of a program that it was told to
// kill. After that the sandbox is destroyed, and the output of the program is lost.
const killTimeout = 3 * time.Second

// kill has the sandbox kill the program, and returns e with the program's output.
func (l *life) kill(e core.Ending) core.Ending {
	l.running = false // Its time is not counted any more.
	if !l.killed && (!l.c.owned() || l.tellKill(e.State) != nil) {
		return e
	}
	l.killed = true
	l.patience.set(killTimeout)
	defer l.patience.off()
	for {
		in := l.next(fromSandbox | fromRequest | fromPatience)
		switch event := in.event.(type) {
		case sandbox.Exit:
			return e.With(event)
		case nil:
			if in.from != fromRequest {
				return e
			}
			l.serve(in)
		}
	}
}
