package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"fermata/continuation"
	"fermata/engine/artifact"
	"fermata/engine/sandbox"
	"fermata/engine/tools/config"
)

// A Dispatcher decides for each call of one program who runs it, and when. It decides each time the
// program comes to rest, about all calls that still wait, in the order in which the program has made
// them. A call that cannot begin yet is left alone: the program makes it again when it comes to rest the
// next time.
type Dispatcher struct {
	Granted
	// Places is how many calls the server runs at the same time for the execution, and MaxCalls how many calls the
	// program may make in all.
	Places, MaxCalls int
	Work             Work
	// Approve returns who has to approve calls of a server's tool now, a config.Approval. With an error such calls fail.
	Approve func(GrantedTool) (string, error)
	// Ask reserves room for n calls that wait for approval at the same time. again tells that the last of them
	// has waited before.
	Ask func(n int, again bool) bool
}

// Work tells which calls the server runs for the program.
type Work interface {
	// Has reports whether a call runs, or has a result that waits for the program.
	Has(number int) bool
	// Size returns how many calls run, and Lanes the lanes in which they do.
	Size() int
	Lanes() map[string]bool
}

// A Proposal is a call as a program has made it, and what the dispatcher has decided about it.
type Proposal struct {
	sandbox.Call
	// Entry is the entry in the record. Its ID is empty if the call is new.
	Entry continuation.Call
	// Granted is the server's tool; ByServer is false if the client runs the tool.
	Granted  GrantedTool
	ByServer bool
	// Key is the key of the tool's toolset, for tools of the server and of the client.
	Key string
	// Refusal is the error with which the call fails at once, or empty.
	Refusal string
	// Unbegun is true if the journal does not have the beginning of the call yet. Ended is true if the journal has
	// the end of the call already: the server that ran it has died before the program got the result.
	Unbegun, Ended bool
}

// A Plan is what the dispatcher has decided about the calls of a program that has come to rest.
type Plan struct {
	// Begin are the calls that begin now or fail at once, in the order in which they were made.
	Begin []*Proposal
	// Asked are the calls that are for the client: to run, or to approve.
	Asked []*Proposal
	// Awaited are the numbers of the calls for which the program waits.
	Awaited map[int]bool
	// Wakes is after which time the program wants to go on because of a timer of its own, or 0 if it has
	// none. While a call waits for the client, timers stand still, and it is 0.
	Wakes time.Duration
}

// Plan decides about calls. An ending with a state, or an error, means that the program may not go on.
func (d *Dispatcher) Plan(calls *sandbox.Calls, r continuation.Record, now time.Time) (Plan, Ending, error) {
	p := Plan{Awaited: map[int]bool{}}
	known := map[int]continuation.Call{}
	for _, c := range r.Pending {
		if state := StateOf(c); state.Open() || state == CallEnded {
			known[c.Number] = c
		}
	}
	x := decider{Dispatcher: d, plan: &p, issued: r.Issued, cost: r.Cost, lanes: d.Work.Lanes(), now: now}
	inspected := inspector{}
	for c, err := range calls.All() {
		if err != nil {
			return p, Ending{}, err
		}
		if d.Sequential && len(p.Awaited) > 0 {
			p.Wakes = 0 // The other calls are decided about later, and may be for the client.
			break
		}
		if c.Wakes > 0 {
			p.Wakes = max(c.Wakes, minWake+time.Duration(calls.Size())*minWakeByte)
		}
		next := &Proposal{Call: c, Key: c.Toolset}
		if next.Granted, next.ByServer = d.find(c.Toolset, c.Tool); !next.ByServer {
			if !slices.Contains(r.Tools, c.Tool) || c.Toolset != "" && !d.owns(c.Toolset, c.Tool) {
				return p, Fail(UngrantedTool, detail(c.Name()), 0), nil
			}
			next.Key = d.traits(c.Tool).Toolset
		}
		if err := inspected.meet(c); err != nil {
			return p, Ending{}, err
		}
		p.Awaited[c.Number] = true
		if !d.Work.Has(c.Number) {
			if refused, err := inspected.inspect(&next.Call); err != nil || refused.State != "" {
				return p, refused, err
			}
			next.Entry = known[c.Number]
			if refused := x.decide(next); refused.State != "" || x.err != nil {
				return p, refused, x.err
			}
		}
	}
	if len(p.Asked) > 0 {
		p.Wakes = 0
	}
	if len(p.Awaited) == 0 {
		return p, Ending{}, errors.New("calls: none")
	}
	return p, Ending{}, nil
}

// A decider decides about calls one after the other, and adds them to a plan.
type decider struct {
	*Dispatcher
	plan *Plan
	// issued is how many calls of the execution have begun or been asked for, including those of this plan.
	issued int
	// cost is what is spent and reserved, including the calls that begin in this plan.
	cost int64
	// lanes are the lanes in which a call runs, or begins in this plan.
	lanes map[string]bool
	// waiting counts the calls that are left alone.
	waiting int
	now     time.Time
	// err is the first move of a call that its state does not allow.
	err error
}

// decide puts a call into the plan, or leaves it alone. An ending with a state means that the program has changed a
// call that it had made before, or makes too many.
func (x *decider) decide(p *Proposal) Ending {
	from := StateOf(p.Entry)
	if from == CallNew {
		p.Entry = continuation.Call{Number: p.Number, Started: x.now}
	}
	if p.Entry.Envelope, p.Entry.Path = !p.ByServer && x.traits(p.Tool).Envelope, ""; p.Entry.Envelope {
		p.Entry.Path = artifact.PathIn(p.Input)
	}
	approval, err := x.approval(p)
	if refused := mark(&p.Entry, p.Key, p.Call); refused.State != "" {
		return refused
	}
	p.Entry.Server, p.Ended = p.ByServer, from == CallEnded
	before := len(x.plan.Begin) + len(x.plan.Asked)
	switch {
	case (from == CallBegun || from == CallEnded) && !p.Granted.Idempotent:
		// A server that has died began this call. If the call has ended, the program never got its result.
		x.fail(p, TextRestarted)
	case err != nil:
		x.fail(p, err.Error())
	case approval != "" && (from == CallNew || from.WaitsForApproval()):
		x.ask(p, approval)
	case !p.ByServer:
		p.Unbegun = from == CallApproved
		x.move(p, CallIssued)
		x.plan.Asked = append(x.plan.Asked, p)
	default:
		x.begin(p)
	}
	if from == CallNew && len(x.plan.Begin)+len(x.plan.Asked) > before {
		if x.issued++; x.issued > x.MaxCalls {
			return Fail(TooManyCalls, "", x.MaxCalls)
		}
	}
	return Ending{}
}

// approval returns who has to approve a call, or "" if it needs no approval. If it returns an error, the
// call fails with it.
func (x *decider) approval(p *Proposal) (string, error) {
	if !p.ByServer {
		if x.traits(p.Tool).Approval {
			return config.ApprovalAlways, nil
		}
		return "", nil
	}
	approval, err := x.Approve(p.Granted)
	if err != nil || approval == config.ApprovalNever {
		return "", err
	}
	return approval, nil
}

// ask puts a call that needs approval into the plan.
func (x *decider) ask(p *Proposal, approval string) {
	from, asked := StateOf(p.Entry), 0
	for _, other := range x.plan.Asked {
		if other.Waits() {
			asked++
		}
	}
	switch {
	case !x.Approvals:
		x.fail(p, TextNoApprovals)
		return
	case len(p.Input) > maxApproved:
		x.fail(p, fmt.Sprintf(textLargeAsk, len(p.Input), maxApproved))
		return
	case asked >= MaxAsked:
		x.leave(p)
		return
	case !x.Ask(asked+1, from != CallNew):
		x.fail(p, fmt.Sprintf(TextManyAsk, MaxAskedOfAll))
		return
	}
	switch {
	case from != CallNew: // Whoever was to decide is.
	case approval == config.ApprovalOperator:
		x.move(p, CallOperator)
	default:
		x.move(p, CallAsked)
	}
	x.take(p)
	x.plan.Asked = append(x.plan.Asked, p)
}

// Waits reports whether the call waits for approval.
func (p *Proposal) Waits() bool { return StateOf(p.Entry).WaitsForApproval() }

// move puts a call into a state.
func (x *decider) move(p *Proposal, to CallState) {
	if err := MoveCall(&p.Entry, to); err != nil && x.err == nil {
		x.err = err
	}
}

// take takes the lane of a call, and reports whether it was free.
func (x *decider) take(p *Proposal) bool {
	if p.Granted.Lane == "" {
		return true
	}
	busy := x.lanes[p.Granted.Lane]
	x.lanes[p.Granted.Lane] = true
	return !busy
}

// begin puts a call of a server's tool into the plan, if it may begin now.
func (x *decider) begin(p *Proposal) {
	if !x.take(p) {
		x.leave(p)
		return
	}
	begins := 0
	for _, other := range x.plan.Begin {
		if other.Refusal == "" {
			begins++
		}
	}
	if x.Work.Size()+begins >= x.Places {
		x.leave(p)
		return
	}
	spent := x.cost - p.Entry.Cost // If another server has begun the call, its cost is reserved already.
	if most := x.MaxCost; most != nil && p.Granted.Cost > *most-spent {
		x.fail(p, fmt.Sprintf(TextTooCostly, p.Granted.Cost, *most, spent))
		return
	}
	x.cost = spent + p.Granted.Cost
	p.Unbegun, p.Entry.Cost = StateOf(p.Entry) != CallBegun && !p.Ended, p.Granted.Cost
	if !p.Ended {
		x.move(p, CallBegun)
	}
	x.plan.Begin = append(x.plan.Begin, p)
}

// leave leaves a call alone. If too many calls wait already, the call fails.
func (x *decider) leave(p *Proposal) {
	if x.waiting++; x.waiting > MaxWaiting {
		x.fail(p, fmt.Sprintf(TextManyWait, MaxWaiting))
	}
}

// fail puts a call into the plan as one that fails at once.
func (x *decider) fail(p *Proposal, why string) {
	p.Unbegun = StateOf(p.Entry) != CallBegun && !p.Ended
	p.Refusal = why
	x.plan.Begin = append(x.plan.Begin, p)
}

// GiveIDs gives ids to the new calls of a list. issued is how many ids were given before; GiveIDs returns
// how many were given in all.
func GiveIDs(list []*Proposal, issued int) int {
	for _, p := range list {
		if p.Entry.ID == "" {
			issued++
			p.Entry.ID, p.Unbegun = CallID(issued), true
		}
	}
	return issued
}

// Pause returns the ending of a program that waits for nothing but its client.
func (d *Dispatcher) Pause(p Plan, r continuation.Record, maxRounds int) Ending {
	if r.Round >= maxRounds {
		return Fail(TooManyRounds, "", maxRounds)
	}
	e := Ending{State: Paused, Size: Weight(r)}
	e.Fresh = GiveIDs(p.Asked, r.Issued) - r.Issued
	for _, asked := range p.Asked {
		call := Call{ID: asked.Entry.ID, Name: asked.Tool, Input: json.RawMessage(asked.Input), Toolset: asked.Key}
		if asked.Waits() {
			call.Approval = ApprovalRequired
		}
		if asked.Unbegun {
			e.Issued = append(e.Issued, IssuedCall{call, asked.Line, asked.ByServer})
		}
		e.Calls, e.Pending = append(e.Calls, call), append(e.Pending, asked.Entry)
		e.Size += int64(cap(asked.Input)+len(asked.Tool)) + CallOverhead
	}
	// An approved call that cannot begin yet, since its lane is taken, stays: otherwise it would need another approval.
	for _, call := range r.Pending {
		if StateOf(call) == CallApproved && p.Awaited[call.Number] && !p.asks(call.Number) {
			e.Pending = append(e.Pending, call)
			e.Size += CallOverhead
		}
	}
	return e
}

// asks reports whether a call is for the client.
func (p Plan) asks(number int) bool {
	return slices.ContainsFunc(p.Asked, func(a *Proposal) bool { return a.Number == number })
}
