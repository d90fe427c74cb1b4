package engine

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

// A dispatcher decides for each call of one program who runs it, and when. It decides each time the
// program comes to rest, about all calls that still wait, in the order in which the program has made
// them. A call that cannot begin yet is left alone: the program makes it again when it comes to rest the
// next time.
type dispatcher struct {
	granted
	// places is how many calls the server runs at the same time for the execution.
	places   int
	maxCalls int
	work     work
	// approve returns who has to approve calls of a server's tool now, a config.Approval. With an error such calls fail.
	approve func(grantedTool) (string, error)
	// ask reserves room for n calls that wait for approval at the same time. again tells that the last of them
	// has waited before.
	ask func(n int, again bool) bool
}

// work tells which calls the server runs for the program.
type work interface {
	// Has reports whether a call runs, or has a result that waits for the program.
	Has(number int) bool
	// Size returns how many calls run, and Lanes the lanes in which they do.
	Size() int
	Lanes() map[string]bool
}

// A proposal is a call as a program has made it, and what the dispatcher has decided about it.
type proposal struct {
	sandbox.Call
	// call is the entry in the record. Its ID is empty if the call is new.
	call continuation.Call
	// tool is the server's tool; server is false if the client runs the tool.
	tool   grantedTool
	server bool
	// toolset is the key of the tool's toolset, for tools of the server and of the client.
	toolset string
	// refusal is the error with which the call fails at once, or empty.
	refusal string
	// unbegun is true if the journal does not have the beginning of the call yet.
	unbegun bool
}

// A plan is what the dispatcher has decided about the calls of a program that has come to rest.
type plan struct {
	// begin are the calls that begin now or fail at once, in the order in which they were made.
	begin []*proposal
	// asked are the calls that are for the client: to run, or to approve.
	asked []*proposal
	// awaited are the numbers of the calls for which the program waits.
	awaited map[int]bool
	// wakes is after which time the program wants to go on because of a timer of its own, or 0 if it has
	// none. While a call waits for the client, timers stand still, and it is 0.
	wakes time.Duration
}

// plan decides about calls. An ending with a state, or an error, means that the program may not go on.
func (d *dispatcher) plan(calls *sandbox.Calls, r continuation.Record) (plan, ending, error) {
	p := plan{awaited: map[int]bool{}}
	known := map[int]continuation.Call{}
	for _, c := range r.Pending {
		if stateOf(c).open() {
			known[c.Number] = c
		}
	}
	x := decider{dispatcher: d, plan: &p, issued: r.Issued, cost: r.Cost, lanes: d.work.Lanes(), now: time.Now()}
	inspected := inspector{}
	for c, err := range calls.All() {
		if err != nil {
			return p, ending{}, err
		}
		if d.Sequential && len(p.awaited) > 0 {
			p.wakes = 0 // The other calls are decided about later, and may be for the client.
			break
		}
		if c.Wakes > 0 {
			p.wakes = max(c.Wakes, minWake+time.Duration(calls.Size())*minWakeByte)
		}
		next := &proposal{Call: c, toolset: c.Toolset}
		if next.tool, next.server = d.find(c.Toolset, c.Tool); !next.server {
			if !slices.Contains(r.Tools, c.Tool) || c.Toolset != "" && !d.owns(c.Toolset, c.Tool) {
				return p, failed(UngrantedTool, detail(c.Name()), 0), nil
			}
			next.toolset = d.traits(c.Tool).Toolset
		}
		if err := inspected.meet(c); err != nil {
			return p, ending{}, err
		}
		p.awaited[c.Number] = true
		if !d.work.Has(c.Number) {
			if refused, err := inspected.inspect(&next.Call); err != nil || refused.state != "" {
				return p, refused, err
			}
			next.call = known[c.Number]
			if refused := x.decide(next); refused.state != "" || x.err != nil {
				return p, refused, x.err
			}
		}
	}
	if len(p.asked) > 0 {
		p.wakes = 0
	}
	if len(p.awaited) == 0 {
		return p, ending{}, errors.New("calls: none")
	}
	return p, ending{}, nil
}

// A decider decides about calls one after the other, and adds them to a plan.
type decider struct {
	*dispatcher
	plan *plan
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
func (x *decider) decide(p *proposal) ending {
	from := stateOf(p.call)
	if from == callNew {
		p.call = continuation.Call{Number: p.Number, Started: x.now}
	}
	if p.call.Envelope, p.call.Path = !p.server && x.traits(p.Tool).Envelope, ""; p.call.Envelope {
		p.call.Path = artifact.PathIn(p.Input)
	}
	approval, err := x.approval(p)
	if refused := mark(&p.call, p.toolset, p.Call); refused.state != "" {
		return refused
	}
	p.call.Server = p.server
	before := len(x.plan.begin) + len(x.plan.asked)
	switch {
	case from == callBegun && !p.tool.Idempotent:
		x.fail(p, textRestarted)
	case err != nil:
		x.fail(p, err.Error())
	case approval != "" && (from == callNew || from.waitsForApproval()):
		x.ask(p, approval)
	case !p.server:
		p.unbegun = from == callApproved
		x.move(p, callIssued)
		x.plan.asked = append(x.plan.asked, p)
	default:
		x.begin(p)
	}
	if from == callNew && len(x.plan.begin)+len(x.plan.asked) > before {
		if x.issued++; x.issued > x.maxCalls {
			return failed(TooManyCalls, "", x.maxCalls)
		}
	}
	return ending{}
}

// approval returns who has to approve a call, or "" if it needs no approval. If it returns an error, the
// call fails with it.
func (x *decider) approval(p *proposal) (string, error) {
	approval := ""
	switch {
	case !p.server:
		if x.traits(p.Tool).Approval {
			approval = config.ApprovalAlways
		}
	default:
		var err error
		if approval, err = x.approve(p.tool); err != nil {
			return "", err
		}
	}
	if approval == config.ApprovalNever {
		approval = ""
	}
	return approval, nil
}

// ask puts a call that needs approval into the plan.
func (x *decider) ask(p *proposal, approval string) {
	from, asked := stateOf(p.call), 0
	for _, other := range x.plan.asked {
		if other.waits() {
			asked++
		}
	}
	switch {
	case !x.Approvals:
		x.fail(p, textNoApprovals)
		return
	case len(p.Input) > maxApproved:
		x.fail(p, fmt.Sprintf(textLargeAsk, len(p.Input), maxApproved))
		return
	case asked >= maxAsked:
		x.leave(p)
		return
	case !x.dispatcher.ask(asked+1, from != callNew):
		x.fail(p, fmt.Sprintf(textManyAsk, maxAskedOfAll))
		return
	}
	switch {
	case from != callNew: // Whoever was to decide is.
	case approval == config.ApprovalOperator:
		x.move(p, callOperator)
	default:
		x.move(p, callAsked)
	}
	x.take(p)
	x.plan.asked = append(x.plan.asked, p)
}

// waits reports whether the call waits for approval.
func (p *proposal) waits() bool { return stateOf(p.call).waitsForApproval() }

// move puts a call into a state.
func (x *decider) move(p *proposal, to callState) {
	if err := moveCall(&p.call, to); err != nil && x.err == nil {
		x.err = err
	}
}

// take takes the lane of a call, and reports whether it was free.
func (x *decider) take(p *proposal) bool {
	if p.tool.Lane == "" {
		return true
	}
	busy := x.lanes[p.tool.Lane]
	x.lanes[p.tool.Lane] = true
	return !busy
}

// begin puts a call of a server's tool into the plan, if it may begin now.
func (x *decider) begin(p *proposal) {
	if !x.take(p) {
		x.leave(p)
		return
	}
	begins := 0
	for _, other := range x.plan.begin {
		if other.refusal == "" {
			begins++
		}
	}
	if x.work.Size()+begins >= x.places {
		x.leave(p)
		return
	}
	spent := x.cost - p.call.Cost // If another server has begun the call, its cost is reserved already.
	if most := x.MaxCost; most != nil && p.tool.Cost > *most-spent {
		x.fail(p, fmt.Sprintf(textTooCostly, p.tool.Cost, *most, spent))
		return
	}
	x.cost = spent + p.tool.Cost
	p.unbegun, p.call.Cost = stateOf(p.call) != callBegun, p.tool.Cost
	x.move(p, callBegun)
	x.plan.begin = append(x.plan.begin, p)
}

// leave leaves a call alone. If too many calls wait already, the call fails.
func (x *decider) leave(p *proposal) {
	if x.waiting++; x.waiting > maxWaiting {
		x.fail(p, fmt.Sprintf(textManyWait, maxWaiting))
	}
}

// fail puts a call into the plan as one that fails at once.
func (x *decider) fail(p *proposal, why string) {
	p.unbegun = stateOf(p.call) != callBegun
	p.refusal = why
	x.plan.begin = append(x.plan.begin, p)
}

// number gives ids to the new calls of a list. issued is how many ids were given before; number returns how
// many were given in all.
func number(list []*proposal, issued int) int {
	for _, p := range list {
		if p.call.ID == "" {
			issued++
			p.call.ID, p.unbegun = callID(issued), true
		}
	}
	return issued
}

// pause returns the ending of a program that waits for nothing but its client.
func (d *dispatcher) pause(p plan, r continuation.Record, maxRounds int) ending {
	if r.Round >= maxRounds {
		return failed(TooManyRounds, "", maxRounds)
	}
	e := ending{state: Paused, size: weight(r)}
	e.fresh = number(p.asked, r.Issued) - r.Issued
	for _, asked := range p.asked {
		call := Call{ID: asked.call.ID, Name: asked.Tool, Input: json.RawMessage(asked.Input), Toolset: asked.toolset}
		if asked.waits() {
			call.Approval = ApprovalRequired
		}
		if asked.unbegun {
			e.issued = append(e.issued, issuedCall{call, asked.Line, asked.server})
		}
		e.calls, e.pending = append(e.calls, call), append(e.pending, asked.call)
		e.size += int64(cap(asked.Input)+len(asked.Tool)) + callOverhead
	}
	// One whose lane has a call that waits for approval begins later, and must not need another approval then.
	for _, call := range r.Pending {
		if stateOf(call) == callApproved && p.awaited[call.Number] && !p.asks(call.Number) {
			e.pending = append(e.pending, call)
			e.size += callOverhead
		}
	}
	return e
}

// asks reports whether a call is for the client.
func (p plan) asks(number int) bool {
	return slices.ContainsFunc(p.asked, func(a *proposal) bool { return a.Number == number })
}
