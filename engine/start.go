package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
	"fermata/engine/requests"
	"fermata/engine/sandbox"
	"fermata/stubs"
)

// errQueue is the cause of the end of a start that has waited too long for a sandbox.
var errQueue = errors.New("waited too long")

// keySpace is the UUID namespace of the ids of executions with a key. It must not change.
var keySpace = uuid.MustParse("6d2b8f0e-5f0f-4a64-9a0f-3f3c1a6a2d51")

// execution returns the id of the execution that s starts. With a key, the id follows from
// principal and key, so that the store accepts the record of one start only.
func (s Start) execution() string {
	if s.Key == "" {
		return uuid.NewString()
	}
	return uuid.NewSHA1(keySpace, []byte(s.Principal+"\x00"+s.Key)).String()
}

// program returns what the sandbox runs. toolsets is the name of the package from which programs import
// toolsets.
func (s Start) program(d *mandate, toolsets string) (*sandbox.Program, error) {
	generate := stubs.Python
	if s.Mode == Bash {
		generate = stubs.Bash
	}
	source, err := generate(s.Tools)
	if err != nil {
		return nil, err
	}
	p := &sandbox.Program{
		Mode: string(s.Mode), Code: s.Code, Stubs: source, Tools: toolNames(s.Tools), Args: s.Args,
		Value: s.Mode == Python && s.WantValue,
	}
	if s.Mode == Bash {
		for _, t := range s.Tools {
			p.Required = append(p.Required, stubs.Required(t))
		}
	}
	if s.Outputs != nil {
		if directory := s.Outputs.Directory(); directory != "" {
			p.Directories = []string{directory}
		}
	}
	if err := s.modules(p, d); err != nil {
		return nil, err
	}
	if len(p.Toolsets) > 0 {
		p.Package = cmp.Or(toolsets, defaultPackage)
	}
	return p, nil
}

// defaultPackage is the package from which programs import toolsets, unless the settings name another.
const defaultPackage = "fermata_tools"

// An outset is what an execution begins with.
type outset struct {
	program *sandbox.Program
	mandate *mandate
	// used is true once an execution has the mandate, and will release it.
	used bool
}

// stage stores the files that the start contains, and returns all input files as the record keeps
// them. encoded are those of Inputs.
func (s Start) stage(ctx context.Context, encoded json.RawMessage, limit int64) (json.RawMessage, error) {
	if s.Staging == nil {
		return encoded, nil
	}
	inputs, err := s.Staging.Stage(ctx)
	if err != nil {
		return nil, err
	}
	return encodeInputs(inputs, limit)
}

// discard removes what stage has stored.
func (s Start) discard(ctx context.Context) {
	if s.Staging != nil {
		s.Staging.Discard(ctx)
	}
}

// A starter starts executions.
type starter struct {
	*common
	executions *executionTable
	requests   *requests.Table
	successor  *successor
}

// start is Engine.Start.
func (st *starter) start(ctx context.Context, s Start) (core.Outcome, error) {
	ctx, done, err := st.requests.Begin(ctx, s.Principal, s.RequestID)
	if err != nil {
		return answerCancelled(s.Session, core.Outcome{}, err)
	}
	defer done()
	from := new(outset)
	defer func() {
		if from.mandate != nil && !from.used {
			from.mandate.release()
		}
	}()
	var outcome core.Outcome
	if s.Key == "" {
		outcome, err = st.startOnce(ctx, s, from)
	} else {
		outcome, err = patiently(ctx, func() (core.Outcome, error) { return st.startKeyed(ctx, s, from) })
	}
	return answerCancelled(s.Session, outcome, err)
}

// prepare makes the program and its mandate, unless they are there. A repeated start does without them: it
// gets its answer also when the toolsets are others by then, or are not available.
func (st *starter) prepare(ctx context.Context, s Start, from *outset) (err error) {
	if from.program != nil {
		return nil
	}
	if from.mandate, err = st.mandate(ctx, s); err == nil {
		from.program, err = s.program(from.mandate, st.o.Package)
	}
	return err
}

// startOnce starts a program without a key, and cancels it if ctx ends first.
func (st *starter) startOnce(ctx context.Context, s Start, from *outset) (core.Outcome, error) {
	x, first, err := st.launch(ctx, s, from)
	if err != nil {
		return core.Outcome{}, err
	}
	select {
	case <-first.done:
	case <-ctx.Done():
		x.cancel()
		<-first.done
	}
	outcome := first.outcome
	outcome.Execution = x.id
	return outcome, first.err
}

// startKeyed starts a program, or finds the execution of an identical start, and waits for the
// outcome.
func (st *starter) startKeyed(ctx context.Context, s Start, from *outset) (outcome core.Outcome, err error) {
	id, found := s.execution(), true
	defer func() {
		if found {
			outcome.Execution = id
		}
	}()
	x := st.executions.find(id)
	var launched *segment
	if x == nil {
		record, err := st.o.Store.Get(ctx, id)
		switch {
		case errors.Is(err, continuation.ErrNotFound):
			x, launched, err = st.launch(ctx, s, from)
			found = err == nil
		case err != nil:
			found = false
		default:
			if x, outcome, err = st.started(ctx, record, s); err == nil && x == nil {
				return outcome, nil
			}
		}
		if err != nil {
			return core.Outcome{}, ownerAway(err)
		}
	}
	first, err := st.restart(ctx, x, s, from)
	if errors.Is(err, errNoProgram) {
		if err = st.prepare(ctx, s, from); err == nil {
			first, err = st.restart(ctx, x, s, from)
		}
	}
	if err != nil {
		return core.Outcome{}, err
	}
	x.requestID.Store(&s.RequestID)
	if launched == nil && s.Joined != nil {
		s.Joined(x.id)
	}
	if launched != nil {
		launched.audience.leave() // From now on this request waits as one that restart knows.
	}
	outcome, err = first.await(ctx, x.cancel)
	if launched == nil && err == nil {
		outcome.Step.Repeated = true
	}
	return outcome, err
}

// restart returns the segment that answers a repeated start.
func (st *starter) restart(ctx context.Context, x *execution, s Start, from *outset) (first *segment, err error) {
	asked := x.ask(ctx, func() {
		first, err = x.conversation.restart(s, from.program, func(ctx context.Context, record continuation.Record) error {
			return give(ctx, st.o.Files, x.sandbox, record)
		})
	})
	return first, cmp.Or(asked, err)
}

// started returns the outcome of an earlier start with the same key, whose execution does not
// live on this server. While the owner is alive, it waits for the answer in the record. If the
// owner is dead, it takes the execution over and returns that.
func (st *starter) started(ctx context.Context, record continuation.Record, s Start) (*execution, core.Outcome, error) {
	for {
		switch {
		case record.Start != s.Request:
			return nil, core.Outcome{}, ErrKeyReused
		case record.Request != record.Start:
			return nil, core.Outcome{}, ErrKeySpent
		case len(record.Answer) > 0 || core.State(record.State).Terminal():
			outcome, err := core.LastAnswer(record)
			return nil, outcome, err
		case record.Owner == st.members.Instance() || !st.members.Lives(ctx, record.Owner):
			x, err := st.successor.takeOver(ctx, record)
			return x, core.Outcome{}, err
		case st.executions.isClosed():
			return nil, core.Outcome{}, ErrClosing
		}
		if s.Joined != nil {
			s.Joined(record.ID)
		}
		select {
		case <-time.After(ownerRetry):
		case <-ctx.Done():
			return nil, core.Outcome{}, context.Cause(ctx)
		}
		var err error
		if record, err = st.o.Store.Get(ctx, record.ID); err != nil {
			return nil, core.Outcome{}, err
		}
	}
}

// launch takes a sandbox, starts a program in it, and returns the execution and its first
// segment. A start with a key is recorded first; ErrConflict means that there is an execution
// with this key already.
func (st *starter) launch(ctx context.Context, s Start, from *outset) (*execution, *segment, error) {
	if err := st.prepare(ctx, s, from); err != nil {
		return nil, nil, err
	}
	id := s.execution()
	if err := st.recordable(ctx, id); err != nil {
		return nil, nil, fmt.Errorf("start an execution: %w", err)
	}
	inputs, err := encodeInputs(s.Inputs, st.o.MaxInputSize)
	if err != nil {
		return nil, nil, err
	}
	counted, err := st.quota.Admit(s.Principal)
	if err != nil {
		return nil, nil, err
	}
	begun := false
	defer func() {
		if !begun {
			counted.Drop()
			s.discard(ctx)
		}
	}()
	sb, waited, err := st.take(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if !begun {
			st.pool.Release(sb)
		}
	}()
	sb.CountBy(counted)
	if inputs, err = s.stage(ctx, inputs, st.o.MaxInputSize); err != nil {
		return nil, nil, err
	}
	record, err := st.newRecord(id, s, from, inputs, sb)
	if err != nil {
		return nil, nil, err
	}
	c := newConversation(st.newLedger(record, st.newChronicle(s, record, from.mandate)))
	x := newExecution(c, sb)
	x.requestID.Store(&s.RequestID)
	if err := give(ctx, st.o.Files, sb, c.record); err != nil {
		return nil, nil, err
	}
	first := newSegment(0, s.Request, waited)
	first.audience.enter()
	c.segment = first
	if err := st.executions.register(x.id, x); err != nil {
		return nil, nil, err
	}
	if err := open(c.ledger, s); err != nil {
		first.finish(core.Outcome{}, ownerAway(err))
		st.executions.forget(x.id)
		close(x.ended)
		return nil, nil, err
	}
	begun, from.used = true, true
	if s.Began != nil {
		s.Began(x.id)
	}
	l := st.newLife(x, counted, from.mandate)
	go func() {
		defer close(x.ended)
		defer st.executions.forget(x.id)
		l.live(delivery{program: from.program})
	}()
	return x, first, nil
}

// recordable returns an error if the store does not accept writes, or is full: a pause could not be recorded either.
func (st *starter) recordable(ctx context.Context, id string) error {
	if !st.members.Announced() {
		return continuation.ErrUnavailable
	}
	return st.o.Store.Room(ctx, id)
}

// take takes a sandbox from the pool, and returns for how long the start has waited for it.
func (st *starter) take(ctx context.Context, s Start) (*sandbox.Conn, time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, st.o.QueueTimeout, errQueue)
	defer cancel()
	asked := time.Now()
	sb, err := st.pool.Take(ctx, s.kind(), s.Principal)
	waited := time.Since(asked)
	if errors.Is(err, errQueue) && st.pool.Full() {
		err = &FullError{Room: st.executions.nextRoom(), cause: err}
	}
	st.o.logWaited(s, waited, err)
	return sb, waited, err
}

// newRecord returns the first record of an execution, which no store has yet.
func (st *starter) newRecord(id string, s Start, from *outset, inputs json.RawMessage, sb *sandbox.Conn) (continuation.Record, error) {
	rights, err := from.mandate.encode()
	if err != nil {
		return continuation.Record{}, err
	}
	contract, err := core.EncodeContract(s.Outputs)
	if err != nil {
		return continuation.Record{}, err
	}
	record := continuation.Record{
		ID:        id,
		Session:   s.Session,
		Principal: s.Principal,
		State:     string(core.Running),
		Created:   time.Now(),
		Deadline:  time.Now().Add(s.Timeout),
		Budget:    s.Timeout,
		Owner:     st.members.Instance(),
		Sandbox:   sb.Ref,
		Marker:    sb.Marker,
		Tools:     from.program.Tools,
		Granted:   rights,
		Inputs:    inputs,
		Scope:     s.Scope,
		Outputs:   contract,
		Request:   s.Request,
		Kept:      s.Keep,
		Depth:     s.Depth,
		Include:   s.Include,
	}
	if s.Key != "" {
		record.Start = s.Request
	}
	return record, nil
}

func toolNames(tools []stubs.Tool) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return names
}

// newChronicle returns the chronicle of a new execution, with its first event.
func (m *common) newChronicle(s Start, r continuation.Record, d *mandate) *chronicle {
	language := cmp.Or(string(s.Mode), "python")
	contract := cmp.Or(s.Contract, Exec)
	lines := bytes.Count(s.Code, []byte(`\n`)) + 1 // The code is a JSON string, so line breaks are escapes.
	w := journal.NewWriter(m.o.Journal, journal.Summary{
		ID: r.ID, Session: r.Session, Principal: r.Principal, Status: journal.StatusRunning,
		Contract: contract, Language: language, Title: s.Title, Labels: s.Labels, Parent: s.Parent,
		Created: journal.Moment(r.Created), RoundLimit: m.o.MaxRounds, Budget: r.Budget.Milliseconds(), Tools: d.Names(r.Tools),
		Server: journal.ServerName(m.members.Instance()),
	}, lines)
	started := &journal.Started{
		Execution: r.ID, Session: r.Session, Language: language, Contract: contract, Code: w.Code(s.Code), Tools: r.Tools, Toolsets: d.Toolsets(),
		Timeout: r.Budget.Milliseconds(), Title: s.Title, Labels: s.Labels, Parent: s.Parent,
	}
	if len(s.SentOutputs) > 0 {
		started.Outputs = w.Code(s.SentOutputs)
	}
	if len(s.SentTimeline) > 0 {
		started.Timeline = w.Code(s.SentTimeline)
	}
	w.Note(started)
	return &chronicle{Writer: w, id: r.ID, words: m.o.Words}
}
