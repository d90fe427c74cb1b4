package engine

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"fermata/engine/cluster"
	"fermata/engine/core"
	"fermata/engine/quota"
	"fermata/engine/sandbox"
)

// attachTimeout bounds a take-over, and how long the sandbox may take to answer in it.
const attachTimeout = 10 * time.Second

// An execution is one run of one program, on this server. Its goroutine, in live or relive,
// is the only one that speaks to the sandbox while the program runs. Requests reach it
// through its conversation.
type execution struct {
	id        string
	principal string
	session   string
	sandbox   *sandbox.Conn
	pool      *sandbox.Pool // of the sandbox
	members   *cluster.Member
	checker   *checker
	// mandate is what the program may call beyond plain tools of its client.
	mandate *mandate
	caller  *caller
	places  int
	files   Files
	log     *slog.Logger
	// conversation has the record of the execution and the requests for it.
	conversation *conversation
	// counted is the execution's share of its principal's quota.
	counted *quota.Share
	// stored is how many bytes counted holds for the latest pause. Only the execution's
	// goroutine uses it.
	stored int64
	// requestID is the client's id of the latest request.
	requestID atomic.Pointer[string]
	// rested is when the program last came to rest. Only the execution's goroutine uses it.
	rested time.Time
	// flooded is how the program has ended in its pause, if it had printed too much. Only the execution's goroutine
	// uses it.
	flooded *core.Ending
	// pausedUntil is when the present pause expires at the latest, nil outside pauses.
	pausedUntil atomic.Pointer[time.Time]
}

func (m *common) newExecution(c *conversation, sb *sandbox.Conn, counted *quota.Share, d *mandate) *execution {
	return &execution{
		id:           c.record.ID,
		principal:    c.record.Principal,
		session:      c.record.Session,
		sandbox:      sb,
		pool:         m.pool,
		members:      m.members,
		checker:      m.checker,
		mandate:      d,
		caller:       &m.caller,
		places:       cmp.Or(m.o.ToolConcurrency, defaultPlaces),
		files:        m.o.Files,
		log:          m.o.Log,
		conversation: c,
		counted:      counted,
	}
}

// live runs the program to the end of the execution, and answers each segment. d sets the
// first segment going.
func (x *execution) live(d delivery) {
	defer x.end()
	for {
		goesOn := x.settle(x.run(d))
		// Let the pool refill only now, after the answer has been sent: making a sandbox
		// competes with it for the processor.
		x.pool.Running(-1)
		if !goesOn {
			return
		}
		var ok bool
		if d, ok = x.pause(); !ok {
			return
		}
	}
}

// relive continues an execution after a take-over, from where it stands.
func (x *execution) relive(at core.Standing) {
	switch {
	case at == core.StandsRunning:
		x.live(delivery{})
		return
	case at == core.StandsPaused && !x.inItsPause():
		if _, claimed := x.leave(core.Expired, core.PauseUnclaimed); claimed {
			x.settle(core.Fail(core.SandboxLost, "", 0))
		}
	default:
		x.skipRepeated()
		if d, ok := x.conversation.redeliver(); ok {
			x.live(d)
			return
		}
		if d, ok := x.pause(); ok {
			x.live(d)
			return
		}
	}
	x.end()
}

// inItsPause reports whether the sandbox waits in the pause that the record tells of. It may have
// ended; and a store that has lost its latest writes tells of an earlier pause.
func (x *execution) inItsPause() bool {
	h := x.sandbox.Hello
	return h.State == sandbox.Paused && h.Round == restsOf(x.conversation.copy())
}

// skipRepeated drops the calls that the supervisor of a paused program repeats after a
// take-over. The record has them already, and they must not count as those of the next pause.
func (x *execution) skipRepeated() {
	if x.sandbox.Hello.State != sandbox.Paused {
		return
	}
	timer := time.NewTimer(attachTimeout)
	defer timer.Stop()
	for {
		select {
		case event := <-x.sandbox.Events():
			if output, ok := event.(sandbox.Output); ok {
				// It comes again, too, before the calls. Some of it the former server has not seen.
				if x.conversation.chronicle.noteOutput(output) {
					x.conversation.publisher.publish()
				}
				continue
			}
			if calls, ok := event.(*sandbox.Calls); ok {
				calls.Release()
			}
		case <-timer.C:
		case <-x.conversation.cancelled:
		}
		return
	}
}

// end gives back what the execution holds: its sandbox and its share of the quota.
func (x *execution) end() {
	x.mandate.release()
	x.counted.Drop()
	defer x.conversation.publisher.end()
	defer x.conversation.saveLate(x.conversation.cancelled)
	if x.conversation.owned() {
		x.pool.Release(x.sandbox)
	} else {
		x.pool.Abandon(x.sandbox)
	}
}

// run runs the program until it comes to rest again. d sets it going.
func (x *execution) run(d delivery) core.Ending {
	x.pool.Running(1)
	x.counted.Run()
	x.counted.Release(x.stored)
	if x.flooded != nil {
		return *x.flooded // The results that the claim has brought come too late for the program.
	}
	e := x.stretch().run(d)
	x.rested, x.stored = e.Rested, e.Held
	return e
}

func (x *execution) stretch() *stretch {
	crew := newCrew(x)
	return &stretch{
		id: x.id, sandbox: x.sandbox, conversation: x.conversation, counted: x.counted, checker: x.checker, files: x.files, log: x.log,
		crew: crew,
		dispatcher: &core.Dispatcher{
			Granted: x.mandate.Granted, Places: x.places, MaxCalls: x.checker.maxCalls,
			Work: crew, Approve: x.mandate.approval, Ask: x.counted.Ask,
		},
	}
}

// defaultPlaces is how many calls the server runs at the same time for one execution unless its
// settings say otherwise.
const defaultPlaces = 16

// settle answers the request of the segment that has come to rest. It reports whether the
// execution goes on, paused.
func (x *execution) settle(e core.Ending) bool {
	// The quota first: a client that has the answer may start another execution at once.
	if e.State == core.Paused {
		x.counted.Pause()
	} else {
		x.counted.Drop()
	}
	return x.conversation.settle(e)
}

// leave ends the execution in its pause, unless a claim came first. Then it returns what the
// claim has delivered. why tells what the execution ends for.
func (x *execution) leave(to core.State, why string) (delivery, bool) {
	// What the pause has stored leaves room for the answer.
	x.counted.Release(x.stored)
	x.stored = 0
	if !x.conversation.leave(to, why) {
		return <-x.conversation.deliveries, true
	}
	return delivery{}, false
}

// pause waits until a request claims the round, and returns what the program goes on with. It
// reports false if the execution ended instead.
func (x *execution) pause() (delivery, bool) {
	x.counted.Pause()
	record := x.conversation.copy()
	x.pausedUntil.Store(&record.Deadline)
	defer x.pausedUntil.Store(nil)
	timer := time.NewTimer(time.Until(record.Deadline))
	begun := record.Round > 0 || x.sandbox.Hello.State != sandbox.Ready
	defer timer.Stop()
	rest := time.NewTimer(stopAfter)
	defer rest.Stop()
	// restless runs from the order to stop until the program has stopped.
	restless := time.NewTimer(time.Hour)
	restless.Stop()
	defer restless.Stop()
	m := meter{began: x.rested}
	if x.rested.IsZero() {
		m.began = time.Now() // The execution was taken over in this pause.
	}
	if !begun {
		rest.Stop() // The sandbox has not been given its program yet.
		m.still = true
	}
	events := x.sandbox.Events()
	for {
		select {
		case d := <-x.conversation.deliveries:
			x.conversation.spend(m.stop(time.Now()))
			return d, true
		case <-rest.C:
			if !x.members.Holds() {
				rest.Reset(stopRetry) // Another server may have taken the execution over.
				continue
			}
			m.asked = time.Now()
			restless.Reset(max(x.conversation.budget(), stopTimeout))
			_ = x.sandbox.Stop() // An error means that the sandbox has ended, as Events tells, too.
		case event := <-events:
			if exit, ok := event.(sandbox.Exit); ok && x.floods(exit) {
				event, events = sandbox.Stopped{}, nil
			}
			switch event := event.(type) {
			case sandbox.Stopped:
				x.conversation.spend(m.stop(time.Now()))
				rest.Stop()
				restless.Stop()
			case sandbox.Ran:
				x.conversation.spend(event.Time)
				if x.conversation.budget() == 0 {
					return x.leave(core.TimedOut, core.PauseSpent)
				}
			case sandbox.Output:
				if x.conversation.chronicle.noteOutput(event) {
					x.conversation.publisher.publish()
				}
			default:
				// The sandbox has died or has broken the protocol: the program cannot go on.
				return x.leave(core.Expired, core.PauseLost)
			}
		case <-restless.C:
			x.conversation.spend(m.stop(time.Now()))
			return x.leave(core.TimedOut, core.PauseSpent)
		case <-timer.C:
			return x.leave(core.Expired, core.PauseRanOut)
		case <-x.conversation.left:
			return delivery{}, false
		case <-x.conversation.cancelled:
			return x.leave(core.Cancelled, core.PauseCancelled)
		}
	}
}

// floods reports whether a program has ended in its pause since it had printed too much before it came to a stop. The
// pause goes on, and the continuation is told, with the output.
func (x *execution) floods(exit sandbox.Exit) bool {
	if exit.Over == "" {
		return false
	}
	e := core.Exited(exit)
	x.flooded = &e
	return true
}

const (
	// stopRetry is how long a server without a lease waits before it looks again whether it may
	// stop a paused program.
	stopRetry = time.Second
	// stopTimeout is the least time that a program gets to come to a stop in a pause, even if
	// its budget is spent.
	stopTimeout = 2 * time.Second
)

func newCrew(x *execution) *crew {
	ctx, cancel := context.WithCancel(context.Background())
	return &crew{
		principal: x.principal, execution: x.id, mandate: x.mandate, depth: x.conversation.copy().Depth, caller: x.caller, counted: x.counted, ctx: ctx, cancel: cancel,
		running: map[int]*served{}, ready: map[int]*served{}, done: make(chan *served),
	}
}
