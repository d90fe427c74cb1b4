package core

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"fermata/continuation"
	"fermata/engine/sandbox"
)

// steps is how many steps TestModel makes. CI and make fuzz make more.
var steps = flag.Int("model-steps", 50_000, "steps of the model of an execution")

// modelSeed is the seed of TestModel, a random one if it is 0.
var modelSeed = flag.Uint64("model-seed", 0, "seed of the model of an execution")

// modelTools are what programs of the model may call.
var modelTools = []GrantedTool{
	{Toolset: "shop", Tool: "look"},
	{Toolset: "shop", Tool: "buy", Cost: 3, Lane: "orders"},
	{Toolset: "shop", Tool: "again", Cost: 1, Idempotent: true},
	{Toolset: "shop", Tool: "ask", Approval: "always", Lane: "orders"},
	{Toolset: "shop", Tool: "boss", Approval: "operator"},
	{Tool: "mine"},
	{Tool: "careful", Approval: "always"},
}

// modelCost is what a program of the model may spend.
const modelCost = 40

// A made is a call of a program of the model: what it has been through, whichever server was there.
type made struct {
	tool GrantedTool
	text string
	// sent is how often the tool was called, and approved whether somebody has approved that. results is how many
	// results the program has got.
	sent, results int
	// id is the one with which it was sent first.
	id       string
	approved bool
	// dropped is true if the call has failed before it was sent. If the program does not hear of that, since the server
	// dies, the call is a new one, and somebody may be asked about it again.
	dropped bool
}

// A world is one execution, its program, its client, its store and its server, each of which may fail at any moment.
type world struct {
	t      *testing.T
	r      *rand.Rand
	d      Dispatcher
	record continuation.Record
	// at is where the execution stands, and stored is the record as the store has it.
	at     Standing
	stored continuation.Record
	now    time.Time
	// calls are all that the program has made, by their numbers; awaited are those for which it waits.
	calls   map[int]*made
	awaited map[int]bool
	// running and ready are the calls of the server: under way, and with results.
	running, ready map[int]continuation.Call
	// ids has the number of the call of each id that a stored record has given.
	ids map[string]int
	// resting is true from when the program waits for the server until it goes on. inPause is true while it waits for
	// the client.
	resting, inPause bool
	// brought are the results of the latest claim.
	brought []Result
	log     []string
}

func newWorld(t *testing.T, r *rand.Rand) *world {
	most := int64(modelCost)
	w := &world{
		t: t, r: r, at: StandsRunning, now: time.Unix(1, 0), calls: map[int]*made{}, awaited: map[int]bool{},
		running: map[int]continuation.Call{}, ready: map[int]continuation.Call{}, ids: map[string]int{},
	}
	w.d = Dispatcher{
		Granted: Granted{Tools: modelTools[:5], Traits: map[string]Traits{"careful": {Approval: true}}, MaxCost: &most, Approvals: true},
		Places:  3, MaxCalls: 1 << 30, Work: w,
		Approve: func(tool GrantedTool) (string, error) { return tool.Approval, nil },
		Ask:     func(int, bool) bool { return true },
	}
	w.record = continuation.Record{ID: "x", State: string(Running), Tools: []string{"mine", "careful"}, Budget: time.Hour, Kept: true, Version: 1}
	w.stored = w.record
	return w
}

// Has, Size and Lanes tell which calls the server runs.
func (w *world) Has(n int) bool {
	_, runs := w.running[n]
	_, ready := w.ready[n]
	return runs || ready
}

func (w *world) Size() int { return len(w.running) }

func (w *world) Lanes() map[string]bool {
	lanes := map[string]bool{}
	for n := range w.running {
		if lane := w.calls[n].tool.Lane; lane != "" {
			lanes[lane] = true
		}
	}
	return lanes
}

// TestModel lets everything happen to executions, in random order, and looks after each step whether what must always
// hold holds: no call is sent twice unless it may be, nor without the approval that it needs; the program gets one
// result of each call at most; ids are given once; costs stay within their bound; states and standings only move as
// their tables say.
func TestModel(t *testing.T) {
	t.Parallel()
	workers := runtime.GOMAXPROCS(0)
	for range workers {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			live(t, *steps/workers)
		})
	}
}

// live lets so many things happen to executions, one after the other.
func live(t *testing.T, steps int) {
	const life = 200 // steps of one execution
	seed := *modelSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	for n := range max(1, steps/life) {
		w := newWorld(t, rand.New(rand.NewPCG(seed, uint64(n))))
		for i := 0; i < life && !t.Failed(); i++ {
			w.step()
			w.holds()
		}
		if !t.Failed() {
			w.comesToAnEnd()
		}
		if t.Failed() {
			t.Fatalf("seed %d, execution %d:\n%s", seed, n, strings.Join(w.log, "\n"))
		}
	}
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func (w *world) failf(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf(format, args...)
}

// chance reports true one time in n.
func (w *world) chance(n int) bool { return w.r.IntN(n) == 0 }

// step lets one thing happen.
func (w *world) step() {
	w.now = w.now.Add(time.Millisecond)
	switch {
	case w.chance(25):
		w.takeOver()
	case w.at == StandsPausedUnsaved:
		w.save()
	case w.at == StandsPaused:
		if w.chance(3) {
			w.approve()
		} else {
			w.resume(w.results(), w.chance(10))
		}
	case w.at == StandsUndelivered:
		// Only the request that has claimed the round brings the results again.
		w.deliver(w.brought)
	case w.resting && len(w.running) > 0 && w.chance(2):
		w.endCall(w.chance(6))
	case w.resting:
		w.goOn(w.chance(8))
	default:
		w.rest(w.chance(10))
	}
}

// rest lets the program make calls, forget some, and come to rest. away says that the store is not available.
func (w *world) rest(away bool) {
	for _, n := range slices.Sorted(maps.Keys(w.awaited)) {
		if w.chance(12) {
			delete(w.awaited, n) // The task was cancelled.
		}
	}
	for range w.r.IntN(3) {
		w.make()
	}
	if len(w.awaited) == 0 {
		w.make()
	}
	w.restAgain(away)
}

// restAgain lets the program come to rest with the calls for which it waits.
func (w *world) restAgain(away bool) {
	var texts []string
	for _, n := range slices.Sorted(maps.Keys(w.awaited)) {
		texts = append(texts, w.calls[n].text)
	}
	p, e, err := w.d.Plan(sandbox.CallsOf([]byte("["+strings.Join(texts, ",")+"]")), w.record, w.now)
	if err != nil || e.State != "" {
		w.failf("the plan is %+v, %v", e, err)
		return
	}
	w.note("rest with %v: %d begin, %d asked, away %t", slices.Sorted(maps.Keys(w.awaited)), len(p.Begin), len(p.Asked), away)
	Forget(func(c continuation.Call) bool {
		return Got(c, p.Awaited) || StateOf(c) == CallBegun && !p.Awaited[c.Number] && !w.Has(c.Number)
	})(&w.record)
	for n := range w.running {
		if !p.Awaited[n] {
			Forget(func(c continuation.Call) bool { return c.Number == n })(&w.record)
		}
	}
	w.resting = true
	if len(p.Begin) == 0 && len(w.running)+len(w.ready) == 0 {
		w.pause(w.d.Pause(p, w.record, 1<<30), away)
		return
	}
	if len(p.Begin) > 0 {
		w.begin(p, away)
	}
}

// make lets the program make a call.
func (w *world) make() {
	tool := modelTools[w.r.IntN(len(modelTools))]
	n := len(w.calls) + 1
	w.calls[n] = &made{tool: tool, text: fmt.Sprintf(`{"n":%d,"tool":%q,"toolset":%q,"input":{}}`, n, tool.Tool, tool.Toolset)}
	w.awaited[n] = true
}

// begin lets the calls of a plan begin, which are recorded first.
func (w *world) begin(p Plan, away bool) {
	begun, failed, err := p.Starts(w.record, GiveIDs(p.Begin, w.record.Issued))
	if err != nil {
		w.failf("%v", err)
		return
	}
	if away {
		failed(&w.record)
	} else {
		begun(&w.record)
		w.write()
	}
	for _, b := range p.Begin {
		if away || b.Refusal != "" {
			w.ready[b.Number] = b.Entry
			w.calls[b.Number].dropped = true
			continue
		}
		w.running[b.Number] = b.Entry
		m := w.calls[b.Number]
		if m.id == "" {
			m.id = b.Entry.ID
		} else if m.id != b.Entry.ID {
			w.failf("call %d was sent as %s and as %s", b.Number, m.id, b.Entry.ID)
		}
		if m.sent++; m.sent > 1 && !m.tool.Idempotent {
			w.failf("call %d was sent %d times", b.Number, m.sent)
		}
		if m.tool.Approval != "" && !m.approved {
			w.failf("call %d was sent without the approval that it needs", b.Number)
		}
	}
}

// endCall ends a call of the server. One that has surely failed costs nothing.
func (w *world) endCall(failed bool) {
	n := slices.Sorted(maps.Keys(w.running))[0]
	call, back := w.running[n], int64(0)
	if failed {
		back = call.Cost
	}
	change, err := Settle(w.record, n, w.record.Received+1, back)
	if err != nil {
		w.failf("%v", err)
		return
	}
	change(&w.record)
	if w.chance(2) {
		w.record.Version++
		w.write() // With what the journal has noted.
	}
	delete(w.running, n)
	w.ready[n] = call
	w.note("call %d has ended, failed %t", n, failed)
}

// goOn gives the program the results that are there. due says that a timer of its own is due.
func (w *world) goOn(due bool) {
	got := 0
	for _, n := range slices.Sorted(maps.Keys(w.ready)) {
		if w.give(n) {
			got++
		}
		delete(w.ready, n)
	}
	if len(w.running) > 0 && got == 0 && !due {
		return
	}
	w.note("the program goes on with %d results", got)
	w.resting = false
}

// give gives the program the result of a call, and reports whether the program has waited for it.
func (w *world) give(n int) bool {
	if w.calls[n].results > 0 {
		w.failf("call %d has one more result", n)
	}
	if !w.awaited[n] {
		return false
	}
	w.calls[n].results++
	delete(w.awaited, n)
	return true
}

// pause records a pause. If the store is away, the execution is paused all the same.
func (w *world) pause(e Ending, away bool) {
	w.move(Paused, !away, e.Pause(0, json.RawMessage(`{}`), w.now.Add(time.Hour)))
	w.inPause = true
	for _, c := range e.Calls {
		if made := w.calls[w.numberOf(c.ID)]; c.Approval != "" && made.approved && !made.dropped {
			w.failf("%s was approved, and is asked about again", c.ID)
		}
	}
	w.note("paused with %v, saved %t", states(w.record), !away)
}

// save lets a client ask again for a pause that the store has not got.
func (w *world) save() {
	w.write()
	w.stand(StandsPaused)
	w.note("the pause is saved")
}

// numberOf returns the number of the pending call with an id.
func (w *world) numberOf(id string) int {
	i := slices.IndexFunc(w.record.Pending, func(c continuation.Call) bool { return c.ID == id })
	return w.record.Pending[i].Number
}

// results returns what a client may answer in a pause, right or wrong.
func (w *world) results() (list []Result) {
	for _, call := range w.record.Pending {
		result := Result{CallID: call.ID, Value: json.RawMessage(`1`), Given: true}
		state := StateOf(call)
		switch {
		case w.chance(5):
			continue
		case state.WaitsForApproval() && (call.Server || w.chance(2)):
			result = Result{CallID: call.ID, Approve: new(w.chance(2))}
		}
		list = append(list, result)
	}
	if w.chance(20) {
		list = append(list, Result{CallID: "call_999999"})
	}
	return list
}

// resume lets a client continue.
func (w *world) resume(results []Result, away bool) {
	brought, err := SettlementOf(w.record.Pending, results)
	if err != nil {
		w.note("a continuation is refused: %v", err)
		return
	}
	change, err := brought.Claim(w.record, "request", w.record.Received, w.now)
	if err != nil {
		w.failf("%v", err)
		return
	}
	if away {
		return // A claim that is not recorded is not made.
	}
	for _, d := range brought.Decisions {
		w.calls[d.Call.Number].approved = d.Approve
	}
	w.move(Running, true, change)
	w.note("claimed with %d results: %v", len(results), states(w.record))
	w.brought = results
	if w.chance(10) {
		w.takeOver() // The server dies before the program has the results.
		return
	}
	w.hand(brought)
}

// deliver brings the results of a claim again, to a server that has taken the execution over.
func (w *world) deliver(results []Result) {
	brought, err := SettlementOf(w.record.Pending, results)
	if err != nil {
		w.failf("the same results are refused: %v", err)
		return
	}
	w.stand(StandsRunning)
	w.note("delivered again")
	w.hand(brought)
}

// hand gives the program what a continuation has brought, once the files are kept that it hands over.
func (w *world) hand(brought Settlement) {
	for _, r := range brought.Results {
		w.give(r.Number)
	}
	w.resting, w.inPause = false, false
}

// approve lets somebody decide on a call by itself. If none is left for the client, the program goes on.
func (w *world) approve() {
	i := slices.IndexFunc(w.record.Pending, func(c continuation.Call) bool { return StateOf(c).WaitsForApproval() })
	if i < 0 || w.at != StandsPaused {
		return
	}
	yes := w.chance(2)
	pending, err := Approve(w.record.Pending, i, yes, "")
	if err != nil {
		w.failf("%v", err)
		return
	}
	w.calls[pending[i].Number].approved = yes
	w.note("call %d is approved: %t", pending[i].Number, yes)
	if ForClient(pending) {
		w.record.Pending = pending
		w.write()
		return
	}
	s, err := SettlementOf(pending, nil)
	if err != nil {
		w.failf("%v", err)
		return
	}
	decided := w.record
	decided.Pending = pending
	change, err := s.Claim(decided, "decided", 0, w.now)
	if err != nil {
		w.failf("%v", err)
		return
	}
	w.move(Running, true, change)
	w.brought = nil
	w.hand(s)
}

// takeOver lets another server go on with what the store has. The program waits meanwhile, or has run on.
func (w *world) takeOver() {
	w.running, w.ready = map[int]continuation.Call{}, map[int]continuation.Call{}
	unsaved := w.at == StandsPausedUnsaved
	w.record = w.stored
	w.record.Version++
	w.note("taken over: %s, %v", w.record.State, states(w.record))
	w.at = StandsUnowned
	switch {
	case State(w.record.State) == Paused:
		w.stand(StandsPaused) // A claim is written before the program goes on, so it is still in this pause.
	case w.inPause && !unsaved:
		w.stand(StandsUndelivered)
	default:
		w.stand(StandsRunning)
		w.resting, w.inPause = false, false // The program makes its calls again.
	}
	w.write()
}

// move moves the execution to a state, which the store has if saved is true.
func (w *world) move(to State, saved bool, change Change) {
	next, err := Move(w.record, to, w.now)
	if err != nil {
		w.failf("%v", err)
		return
	}
	change(&next)
	w.record = next
	w.stand(StandingIn(to, saved))
	if saved {
		w.write()
	}
}

func (w *world) stand(to Standing) {
	if err := w.at.Allows(to); err != nil {
		w.failf("%v", err)
	}
	w.at = to
}

// write stores the record. What is stored is never given to another call.
func (w *world) write() {
	w.stored = w.record
	w.stored.Pending = slices.Clone(w.record.Pending)
	for _, c := range w.stored.Pending {
		if known, given := w.ids[c.ID]; given && known != c.Number {
			w.failf("%s was call %d and is call %d", c.ID, known, c.Number)
		}
		w.ids[c.ID] = c.Number
	}
}

// holds checks what must hold at any moment.
func (w *world) holds() {
	numbers, ids := map[int]bool{}, map[string]bool{}
	for _, c := range w.record.Pending {
		if numbers[c.Number] || ids[c.ID] || c.ID == "" {
			w.failf("call %d, %q is pending twice, or has no id", c.Number, c.ID)
		}
		numbers[c.Number], ids[c.ID] = true, true
		if n := CallNumber(c.ID); n < 1 || n > w.record.Issued {
			w.failf("%s is pending, and %d calls were issued", c.ID, w.record.Issued)
		}
		if _, known := recordedStates[recordedCall{c.Stage, c.Answered}]; !known {
			w.failf("%s has the stage %q, answered %t", c.ID, c.Stage, c.Answered)
		}
	}
	if w.record.Cost < 0 || w.record.Cost > modelCost {
		w.failf("%d are spent or reserved", w.record.Cost)
	}
	if !slices.Contains(standings[w.at].states, State(w.record.State)) {
		w.failf("the record is %q and the execution stands at %q", w.record.State, w.at)
	}
}

// comesToAnEnd answers everything from now on. Every call for which the program waits must get its result.
func (w *world) comesToAnEnd() {
	for range 1000 {
		if len(w.awaited) == 0 {
			return
		}
		w.now = w.now.Add(time.Millisecond)
		switch {
		case w.at == StandsPausedUnsaved:
			w.save()
		case w.at == StandsPaused:
			if slices.ContainsFunc(w.record.Pending, func(c continuation.Call) bool { return StateOf(c) == CallOperator }) {
				w.approve()
				continue
			}
			var results []Result
			for _, call := range w.record.Pending {
				if StateOf(call).WaitsForApproval() {
					results = append(results, Result{CallID: call.ID, Approve: new(true)})
				} else {
					results = append(results, Result{CallID: call.ID, Value: json.RawMessage(`1`), Given: true})
				}
			}
			w.resume(results, false)
		case w.at == StandsUndelivered:
			w.deliver(w.brought)
		case w.resting && len(w.running) > 0:
			w.endCall(false)
		case w.resting:
			w.goOn(true)
		default:
			w.restAgain(false)
		}
		w.holds()
		if w.t.Failed() {
			return
		}
	}
	w.failf("the program still waits for %v: %s, %v", slices.Sorted(maps.Keys(w.awaited)), w.at, states(w.record))
}

// states returns the states of the pending calls of a record, for people.
func states(r continuation.Record) string {
	var list []string
	for _, c := range r.Pending {
		list = append(list, fmt.Sprintf("%s=%d %s", c.ID, c.Number, StateOf(c)))
	}
	return strings.Join(list, ", ")
}
