package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fermata/continuation"
	"fermata/engine/sandbox"
)

var (
	// ErrUnreachable means that no connection to another server could be made, so
	// that it has not seen the request.
	ErrUnreachable = errors.New("engine: server is unreachable")
	// ErrOwnerAway means that the server that holds an execution is away, and its
	// sandbox cannot be reached from here. It may come back.
	ErrOwnerAway = errors.New("engine: the execution's server is away")
)

// Peers are the other servers that share a store with this one. None of them hands
// over again what was handed over to it.
type Peers interface {
	// Resume has the server at address handle r.
	Resume(ctx context.Context, address string, r Resume) (Outcome, error)
	// Cancel has the server at address do what it can about c.
	Cancel(ctx context.Context, address string, c Cancel) (Cancelling, error)
}

const (
	// leaseTime is how long a server counts as alive after it has last said so.
	leaseTime = 6 * time.Second
	// leaseRenewal is how often it does.
	leaseRenewal = leaseTime / 3
	// ownerPatience is how long a request waits for an execution whose server is
	// away: until the lease of a dead one has ended, and somebody could take over.
	ownerPatience = leaseTime + leaseRenewal
	// ownerRetry is how often it looks meanwhile.
	ownerRetry = 200 * time.Millisecond
)

// A membership is this server's part in a group of servers that share a store.
// Without a registry it is the only one, and its lease never ends.
type membership struct {
	registry continuation.Registry
	instance string
	address  string
	// exclusive says that no other server can reach this one's sandboxes.
	exclusive bool
	began     time.Time
	until     atomic.Int64 // end of the lease, nanoseconds since began
}

// renew says that this server lives.
func (m *membership) renew(ctx context.Context) error {
	// The lease counts from before the call: nobody else may think it longer. A
	// step of the wall clock does not change it.
	until := time.Since(m.began) + leaseTime
	if err := m.registry.Announce(ctx, m.instance, m.address, leaseTime); err != nil {
		return err
	}
	m.until.Store(int64(until))
	return nil
}

// announced reports whether the other servers know that this one lives.
func (m *membership) announced() bool {
	return m.alone() || time.Since(m.began) < time.Duration(m.until.Load())
}

// holds reports whether no other server can have taken over an execution since
// this one last said that it lives.
func (m *membership) holds() bool { return m.exclusive || m.announced() }

// alone reports whether no other server has this one's store.
func (m *membership) alone() bool { return m.registry == nil }

// locate returns the address of another server that lives.
func (m *membership) locate(ctx context.Context, instance string) (string, error) {
	if m.alone() || m.succeeds(instance) {
		return "", continuation.ErrNotFound
	}
	return m.registry.Locate(ctx, instance)
}

// lives reports whether another server lives, or may do so for all we know.
func (m *membership) lives(ctx context.Context, instance string) bool {
	_, err := m.locate(ctx, instance)
	return !errors.Is(err, continuation.ErrNotFound)
}

// succeeds reports whether an instance is an earlier one of this server, and so
// dead: the part of the name before the dot belongs to one server at a time.
func (m *membership) succeeds(instance string) bool {
	before, _, _ := strings.Cut(instance, ".")
	own, _, _ := strings.Cut(m.instance, ".")
	return instance != m.instance && (m.alone() || before == own)
}

// attend renews the lease and clears up after dead servers until ctx ends.
func (e *Engine) attend(ctx context.Context) {
	renewal, sweep := time.NewTicker(leaseRenewal), time.NewTicker(sweepInterval)
	defer renewal.Stop()
	defer sweep.Stop()
	for {
		select {
		case <-renewal.C:
			if !e.members.alone() {
				if err := e.members.renew(ctx); err != nil {
					e.o.Log.Warn("cannot renew the lease", "err", err)
					continue
				}
			}
			if e.sweeper.begun.Load() {
				continue
			}
			// What is left could not be looked for when this server started.
		case <-sweep.C:
			if e.members.alone() {
				continue
			}
		case <-ctx.Done():
			return
		}
		// Whatever holds up the sweep, the lease goes on.
		e.sweepAside(func(err error) {
			if err != nil && e.clearing.Err() == nil {
				e.o.Log.Warn("cannot clear up after other servers", "err", err)
			}
		})
	}
}

// sweepAside sweeps in the background, unless the last sweep still goes on.
func (e *Engine) sweepAside(done func(error)) {
	if !e.sweeper.busy.CompareAndSwap(false, true) {
		return
	}
	e.attended.Go(func() {
		defer e.sweeper.busy.Store(false)
		done(e.sweep(e.clearing))
	})
}

// withdraw tells the other servers that this one has gone, so that they need not
// wait for the end of its lease.
func (e *Engine) withdraw() {
	if e.members.alone() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if err := e.members.registry.Withdraw(ctx, e.members.instance); err != nil {
		e.o.Log.Warn("cannot withdraw from the other servers", "err", err)
	}
}

// sweepInterval is how often a server looks for sandboxes whose server has died.
const sweepInterval = time.Minute

// A sweeper is what one sweep knows of those before it.
type sweeper struct {
	// busy says that one goes on: there is one at a time.
	busy atomic.Bool
	// begun says that one has found out what there is.
	begun atomic.Bool
	// absent are the servers that did not live then. Redis may lose the word of a
	// living one, which then says it again long before the next sweep.
	absent map[string]bool
}

// sweep destroys sandboxes that have neither an execution nor a living server, and
// takes over those that have an execution but no server. An error means that it could
// not find out which these are.
func (e *Engine) sweep(ctx context.Context) error {
	found, err := e.o.Provider.List(ctx)
	if err != nil {
		return fmt.Errorf("list sandboxes: %w", err)
	}
	here := e.sandboxesHere()
	absent, orphans := map[string]bool{}, map[string]bool{}
	for _, s := range found {
		if here[s.Ref] || s.Server == e.members.instance || e.pool.Stuck(s.Ref) {
			continue
		}
		if _, known := absent[s.Server]; !known {
			absent[s.Server] = !e.members.lives(ctx, s.Server)
		}
		if absent[s.Server] && (e.members.succeeds(s.Server) || e.sweeper.absent[s.Server]) {
			orphans[s.Ref] = true
		}
	}
	if len(orphans) > 0 || !e.sweeper.begun.Load() {
		if err := e.inherit(ctx, orphans); err != nil {
			return err
		}
	}
	e.sweeper.absent = absent
	e.sweeper.begun.Store(true)
	return nil
}

// sandboxesHere are those of the executions that live here.
func (e *Engine) sandboxesHere() map[string]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	here := make(map[string]bool, len(e.executions))
	for _, x := range e.executions {
		here[x.sandbox.Ref] = true
	}
	return here
}

// takeOvers is how many executions are taken over at once, and how many sandboxes are
// destroyed meanwhile: one that does not answer must not keep the others waiting.
const takeOvers = 16

// inherit takes over the executions of dead servers and destroys those of their
// sandboxes that have none.
func (e *Engine) inherit(ctx context.Context, orphans map[string]bool) error {
	records, err := e.o.Store.List(ctx)
	if err != nil {
		return fmt.Errorf("list executions: %w", err)
	}
	var inherited []continuation.Record
	for _, record := range records {
		if State(record.State).terminal() {
			continue
		}
		ours := orphans[record.Sandbox] || e.members.succeeds(record.Owner)
		delete(orphans, record.Sandbox)
		if ours && record.Owner != e.members.instance && !e.members.lives(ctx, record.Owner) {
			inherited = append(inherited, record)
		}
	}
	var clearing sync.WaitGroup
	clearing.Go(func() {
		sideBySide(ctx, slices.Values(inherited), func(record continuation.Record) {
			if _, err := e.takeOver(ctx, record); err != nil && !errors.Is(err, continuation.ErrConflict) {
				e.o.Log.Warn("cannot take over an execution", "execution", record.ID, "err", err)
			}
		})
	})
	sideBySide(ctx, maps.Keys(orphans), func(ref string) { e.pool.Destroy(ctx, ref) })
	clearing.Wait()
	return nil
}

// sideBySide does something with each of many, with takeOvers of them at once. When ctx
// has ended it begins with no more of them.
func sideBySide[T any](ctx context.Context, all iter.Seq[T], do func(T)) {
	var doing sync.WaitGroup
	defer doing.Wait()
	slots := make(chan struct{}, takeOvers)
	for one := range all {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		doing.Go(func() {
			defer func() { <-slots }()
			do(one)
		})
	}
}

// attachTimeout bounds how long a sandbox that is taken over may take to answer.
const attachTimeout = 10 * time.Second

// takeOver makes this server the owner of an execution whose server has died, and
// goes on with it in the state in which its sandbox is. Of servers that try at once
// the store lets one pass, before it touches the sandbox: the others, and whoever
// tries while this one does, get ErrConflict. sandbox.ErrGone means that the sandbox cannot
// be reached from here and nothing was changed.
func (e *Engine) takeOver(ctx context.Context, record continuation.Record) (*execution, error) {
	if !e.adopt(record.ID) {
		return nil, continuation.ErrConflict
	}
	defer e.adopted(record.ID)
	// It does not end with a request half way.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attachTimeout)
	defer cancel()
	defer context.AfterFunc(e.clearing, cancel)()
	here, err := e.reaches(ctx, record.Sandbox)
	if err != nil {
		return nil, err
	}
	if !here && !e.members.succeeds(record.Owner) && record.Owner != e.members.instance {
		return nil, fmt.Errorf("%w: %s", sandbox.ErrGone, record.Sandbox)
	}
	record.Owner = e.members.instance
	record.Version++
	if State(record.State) == Running {
		// Its client comes back, or not; until then the answer waits.
		record.Deadline = time.Now().Add(record.Budget - record.Spent + e.o.PauseTTL)
	}
	if err := e.o.Store.Put(ctx, record, max(0, time.Until(record.Deadline))+recordSlack); err != nil {
		return nil, err
	}
	if !here {
		return nil, e.bury(record)
	}
	sb, err := e.pool.Adopt(ctx, record.Sandbox, record.Marker)
	if err != nil && e.isClosed() {
		return nil, ErrClosing // The next server may have more time.
	}
	if err != nil {
		e.o.Log.Warn("an execution is lost with its sandbox", "execution", record.ID, "err", err)
		defer e.pool.Destroy(e.clearing, record.Sandbox)
		return nil, e.bury(record)
	}
	record.Spent += max(0, sb.Hello.Ran)
	stored := weight(record) + int64(len(record.Answer))
	x := newExecution(e, record, sb, e.quota.adopt(record.Principal, stored))
	x.stored = stored
	sb.CountBy(x.counted)
	if err := x.recall(); err != nil {
		e.o.Log.Warn("cannot read the kept answer of an execution", "execution", record.ID, "err", err)
	}
	if err := e.register(x); err != nil {
		x.counted.drop()
		e.pool.Abandon(sb)
		return nil, err
	}
	e.tally.tookOver()
	go x.relive()
	return x, nil
}

// adopt notes that an execution is being taken over. It reports false if it is
// already, or lives here.
func (e *Engine) adopt(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.executions[id] != nil || e.adopting[id] {
		return false
	}
	e.adopting[id] = true
	return true
}

func (e *Engine) adopted(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.adopting, id)
}

// reaches reports whether a sandbox can be reached from here.
func (e *Engine) reaches(ctx context.Context, ref string) (bool, error) {
	found, err := e.o.Provider.List(ctx)
	if err != nil {
		return false, fmt.Errorf("list sandboxes: %w", err)
	}
	for _, s := range found {
		if s.Ref == ref {
			return true, nil
		}
	}
	return false, nil
}

// errBuried means that the end of an execution has just been recorded: a look at the
// record tells the rest.
var errBuried = fmt.Errorf("%w, with its sandbox", ErrOwnerAway)

// bury records the end of an execution of this server whose sandbox is gone. If that
// succeeds it returns errBuried.
func (e *Engine) bury(record continuation.Record) error {
	// What led here may have taken all of its time.
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	outcome := Outcome{State: Expired, Session: record.Session}
	if State(record.State) == Running {
		outcome.State, outcome.Reason = Failed, SandboxLost
	}
	next, err := move(record, outcome.State)
	if err != nil {
		return err
	}
	if next.Answer, err = outcome.encode(); err != nil {
		return err
	}
	next.Deadline = time.Now().Add(e.o.KeepAnswers)
	next.Pending, next.Tools = nil, nil
	if err := e.o.Store.Put(ctx, next, e.o.KeepAnswers+recordSlack); err != nil {
		return err
	}
	e.tally.ended(outcome)
	return errBuried
}

// kept returns the last answer of an execution that has ended to the request that
// led to it.
func kept(record continuation.Record, claims continuation.Claims, r Resume) (Outcome, error) {
	if record.Round != claims.Round || record.Request != r.Request {
		return Outcome{}, ErrExpired
	}
	return lastAnswer(record)
}

func lastAnswer(record continuation.Record) (Outcome, error) {
	var outcome Outcome
	if len(record.Answer) == 0 {
		return outcome, ErrExpired // It was too much to keep.
	}
	if err := json.Unmarshal(record.Answer, &outcome); err != nil {
		return Outcome{}, fmt.Errorf("read kept answer of execution %s: %w", record.ID, err)
	}
	return outcome, nil
}

// elsewhere handles a request for an execution that does not live here: its last
// answer may be kept, its server may live, or it may be taken over. It returns the
// execution in the last case, the outcome in the others.
func (e *Engine) elsewhere(ctx context.Context, claims continuation.Claims, r Resume) (*execution, Outcome, error) {
	record, err := e.o.Store.Get(ctx, claims.Execution)
	if errors.Is(err, continuation.ErrNotFound) {
		return nil, Outcome{}, ErrExpired
	}
	if err != nil {
		return nil, Outcome{}, err
	}
	if record.Session != claims.Session {
		return nil, Outcome{}, continuation.ErrToken
	}
	if State(record.State).terminal() {
		outcome, err := kept(record, claims, r)
		return nil, outcome, err
	}
	if record.Owner != e.members.instance {
		address, err := e.members.locate(ctx, record.Owner)
		if err == nil {
			outcome, err := e.handOver(ctx, address, r)
			return nil, outcome, err
		}
		if !errors.Is(err, continuation.ErrNotFound) {
			return nil, Outcome{}, err
		}
	}
	x, err := e.takeOver(ctx, record)
	return x, Outcome{}, ownerAway(err)
}

// ownerAway makes one error of those after which another look may find more.
func ownerAway(err error) error {
	// The first means that somebody else is taking the execution over.
	if errors.Is(err, continuation.ErrConflict) || errors.Is(err, sandbox.ErrGone) || errors.Is(err, ErrUnreachable) {
		return fmt.Errorf("%w: %w", ErrOwnerAway, err)
	}
	return err
}

// handOver has the owner handle a request. An owner that cannot be reached may live
// all the same: nobody takes its executions over before its lease has ended.
func (e *Engine) handOver(ctx context.Context, address string, r Resume) (Outcome, error) {
	if r.HandedOver || e.o.Peers == nil {
		return Outcome{}, ErrOwnerAway
	}
	// A request that is cancelled is cancelled at its owner, too, whose answer counts:
	// it is the one that an identical request gets.
	outcome, err := e.o.Peers.Resume(context.WithoutCancel(ctx), address, r)
	return outcome, ownerAway(err)
}

// patiently tries again, for a while, what fails since an owner is away: it may come
// back, or somebody may take over.
func patiently(ctx context.Context, try func() (Outcome, error)) (Outcome, error) {
	for patience := time.Now().Add(ownerPatience); ; {
		outcome, err := try()
		if !errors.Is(err, ErrOwnerAway) || time.Now().After(patience) {
			return outcome, err
		}
		select {
		case <-time.After(ownerRetry):
		case <-ctx.Done():
			return Outcome{}, context.Cause(ctx)
		}
	}
}
