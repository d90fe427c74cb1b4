package engine

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/sandbox"
	"fermata/engine/tools/host"
	"fermata/engine/tools/policy"
	"fermata/stubs"
)

// dispatchFile describes the toolsets of these tests. The tests send no call.
const dispatchFile = `toolsets:
  shop:
    http:
      base_url: https://shop.example.com
      tools:
        - {name: look, description: d, method: GET, path: /look}
        - {name: buy, description: d, method: POST, path: /buy, cost: 3, lane: orders}
        - {name: sell, description: d, method: POST, path: /sell, lane: orders}
        - {name: ask, description: d, method: POST, path: /ask, approval: always}
        - {name: boss, description: d, method: POST, path: /boss, approval: operator}
        - {name: ship, description: d, method: POST, path: /ship, approval: always, lane: orders}
`

// dispatching returns a dispatcher whose program may call everything in dispatchFile, the client's tool
// mine, and its tool careful, which needs approval.
func dispatching(t *testing.T, change func(*mandate)) *core.Dispatcher {
	t.Helper()
	file := filepath.Join(t.TempDir(), "toolsets.yaml")
	if err := os.WriteFile(file, []byte(dispatchFile), 0o600); err != nil {
		t.Fatal(err)
	}
	toolsets, err := host.Open(t.Context(), host.Options{Path: file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = toolsets.Close(t.Context()) })
	grant, err := toolsets.Grant(t.Context(), "ada", policy.Start{Toolsets: []string{"shop"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(grant.Release)
	d := &mandate{grant: grant, Granted: core.Granted{
		Approvals: true, Traits: map[string]core.Traits{"careful": {Approval: true}, "mine": {Toolset: "own", Class: "Own"}},
	}}
	for _, tool := range grant.Tools {
		d.Tools = append(d.Tools, granted(tool))
	}
	if change != nil {
		change(d)
	}
	return &core.Dispatcher{
		Granted: d.Granted, Places: 3, MaxCalls: 100, Work: &crew{},
		Approve: d.approval, Ask: newQuota(Options{}).Adopt("ada", 0).Ask,
	}
}

// callsOf returns calls from texts such as shop.look or mine, numbered from 1.
func callsOf(names ...string) *sandbox.Calls {
	return sandbox.CallsOf([]byte("[" + listOf(names...) + "]"))
}

// listOf returns the calls of callsOf as JSON, with commas between them.
func listOf(names ...string) string {
	list := make([]string, len(names))
	for i, name := range names {
		toolset, tool, found := strings.Cut(name, ".")
		if !found {
			toolset, tool = "", name
		}
		list[i] = fmt.Sprintf(`{"n":%d,"toolset":%q,"tool":%q,"input":{}}`, i+1, toolset, tool)
	}
	return strings.Join(list, ",")
}

// planned returns a plan as text: what begins, what fails, and what the client is asked for.
func planned(p core.Plan) string {
	var words []string
	for _, b := range p.Begin {
		if b.Refusal != "" {
			words = append(words, fmt.Sprintf("%d fails: %s", b.Number, b.Refusal))
		} else {
			words = append(words, fmt.Sprintf("%d begins", b.Number))
		}
	}
	for _, a := range p.Asked {
		word := "is for the client"
		if a.Waits() {
			word = "is " + a.Entry.Stage
		}
		words = append(words, fmt.Sprintf("%d %s", a.Number, word))
	}
	return strings.Join(words, "; ")
}

// TestPlan decides about calls in many situations.
func TestPlan(t *testing.T) {
	empty := sha256.Sum256([]byte("{}"))
	pending := func(tool, stage string, server bool) []continuation.Call {
		toolset := ""
		if server {
			toolset = "shop"
		}
		return []continuation.Call{{Number: 1, ID: "call_001", Toolset: toolset, Tool: tool, Stage: stage, Digest: empty[:], Server: server}}
	}
	for name, c := range map[string]struct {
		change  func(*mandate)
		pending []continuation.Call
		cost    int64
		calls   []string
		want    string
	}{
		"servers and clients":         {nil, nil, 0, []string{"shop.look", "mine", "shop.look"}, "1 begins; 3 begins; 2 is for the client"},
		"a client's in its form":      {nil, nil, 0, []string{"own.mine"}, "1 is for the client"},
		"no more places":              {nil, nil, 0, []string{"shop.look", "shop.look", "shop.look", "shop.look"}, "1 begins; 2 begins; 3 begins"},
		"one call of a lane":          {nil, nil, 0, []string{"shop.buy", "shop.sell", "shop.look"}, "1 begins; 3 begins"},
		"sequential":                  {func(d *mandate) { d.Sequential = true }, nil, 0, []string{"shop.look", "shop.look", "mine"}, "1 begins"},
		"sequential, a client's":      {func(d *mandate) { d.Sequential = true }, nil, 0, []string{"mine", "shop.look"}, "1 is for the client"},
		"within the bound of costs":   {func(d *mandate) { d.MaxCost = new(int64(3)) }, nil, 0, []string{"shop.buy"}, "1 begins"},
		"beyond the bound of costs":   {func(d *mandate) { d.MaxCost = new(int64(5)) }, nil, 3, []string{"shop.buy", "shop.look"}, "1 fails: " + fmt.Sprintf(core.TextTooCostly, 3, 5, 3) + "; 2 begins"},
		"approval":                    {nil, nil, 0, []string{"shop.ask", "careful", "shop.boss"}, "1 is asked; 2 is asked; 3 is operator"},
		"approval, nobody to ask":     {func(d *mandate) { d.Approvals = false }, nil, 0, []string{"shop.ask", "careful"}, "1 fails: " + core.TextNoApprovals + "; 2 fails: " + core.TextNoApprovals},
		"approved":                    {nil, pending("ask", "approved", true), 0, []string{"shop.ask"}, "1 begins"},
		"approved, a client's":        {nil, pending("careful", "approved", false), 0, []string{"careful"}, "1 is for the client"},
		"a client's, approved before": {nil, pending("careful", "", false), 0, []string{"careful"}, "1 is for the client"},
		"asked again":                 {nil, pending("ask", "asked", true), 0, []string{"shop.ask"}, "1 is asked"},
		"begun and not to be doubled": {nil, pending("buy", "begun", true), 0, []string{"shop.buy"}, "1 fails: " + core.TextRestarted},
		"begun and idempotent":        {nil, pending("look", "begun", true), 0, []string{"shop.look"}, "1 begins"},
		"another tool than approved":  {nil, pending("ask", "approved", true), 0, []string{"shop.boss"}, "it sent another input for a call that it had made before"},
		"a client's, once more":       {nil, []continuation.Call{{Number: 1, ID: "call_001", Toolset: "own", Tool: "mine", Digest: empty[:]}}, 0, []string{"mine"}, "1 is for the client"},
		"of a server without digests": {nil, []continuation.Call{{Number: 1, ID: "call_001"}}, 0, []string{"mine"}, "1 is for the client"},
		"another tool of the client":  {nil, pending("mine", "", false), 0, []string{"careful"}, "it sent another input for a call that it had made before"},
		"a server's, then a client's": {nil, pending("look", "begun", true), 0, []string{"mine"}, "it sent another input for a call that it had made before"},
		"a tool that is not granted":  {nil, nil, 0, []string{"shop.steal"}, "shop.steal"},
		"a toolset that is another's": {nil, nil, 0, []string{"shop.mine"}, "shop.mine"},
		"a server's as a client's":    {nil, nil, 0, []string{"look"}, "look"},
		"no toolsets any more":        {func(d *mandate) { d.grant = nil }, nil, 0, []string{"shop.look"}, "1 fails: this server has no toolsets"},
	} {
		t.Run(name, func(t *testing.T) {
			d := dispatching(t, c.change)
			p, e, err := d.Plan(callsOf(c.calls...), continuation.Record{Tools: []string{"mine", "careful"}, Pending: c.pending, Issued: len(c.pending), Cost: c.cost}, time.Now())
			got := planned(p)
			if e.State == core.Failed {
				got = e.Detail
			}
			if got != c.want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

// An approved call stays approved in a pause in which it cannot begin, because a call that waits for approval
// has its lane.
func TestPauseKeepsApprovals(t *testing.T) {
	digest := sha256.Sum256([]byte("{}"))
	call := func(n int, stage string) continuation.Call {
		return continuation.Call{Number: n, ID: core.CallID(n), Toolset: "shop", Tool: "ship", Stage: stage, Digest: digest[:], Server: true}
	}
	r := continuation.Record{Issued: 3, Pending: []continuation.Call{call(1, "asked"), call(2, "approved"), call(3, "approved")}}
	d := dispatching(t, nil)
	p, _, err := d.Plan(callsOf("shop.ship", "shop.ship"), r, time.Now())
	if got := planned(p); got != "1 is asked" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	e := d.Pause(p, r, 20)
	if len(e.Calls) != 1 || e.Fresh != 0 {
		t.Errorf("the client is asked for %+v", e.Calls)
	}
	stages := map[string]string{}
	for _, c := range e.Pending {
		stages[c.ID] = c.Stage
	}
	if want := map[string]string{"call_001": "asked", "call_002": "approved"}; !maps.Equal(stages, want) {
		t.Errorf("the record has %v, want %v", stages, want)
	}
}

// A program whose call cannot begin yet waits for the call in its way, even if it has given that one up.
func TestResultsOfGivenUpCalls(t *testing.T) {
	given, ready := &served{call: continuation.Call{Number: 1}}, &served{call: continuation.Call{Number: 2}, output: []byte("1")}
	w := &crew{running: map[int]*served{1: given}, ready: map[int]*served{}, resting: true, awaited: map[int]bool{2: true}}
	if results, now := w.results(false); now {
		t.Errorf("the program goes on with %v", results)
	}
	w.ready[2] = ready
	if results, now := w.results(false); !now || len(results) != 1 {
		t.Errorf("the program gets %v, %v", results, now)
	}
	w.resting = true
	w.end(given)
	if results, now := w.results(false); !now || len(results) != 0 {
		t.Errorf("after the end of the call the program gets %v, %v", results, now)
	}
}

// A program goes on for its timers while the server runs its calls, unless it waits for its client, too.
func TestPlanOfTimers(t *testing.T) {
	for _, tc := range []struct {
		calls      []string
		wakes      string
		sequential bool
		want       time.Duration
	}{
		{[]string{"shop.look"}, "400", false, 400 * time.Millisecond},
		{[]string{"shop.look", "shop.buy", "shop.sell"}, "400", false, 400 * time.Millisecond},
		{[]string{"shop.look"}, "0", false, 0},
		{[]string{"shop.look"}, `"soon"`, false, 0},
		{[]string{"shop.look"}, "99999999999", false, 0},
		{[]string{"shop.look", "mine"}, "400", false, 0},
		{[]string{"shop.look", "shop.ask"}, "400", false, 0},
		{[]string{"shop.look"}, "400", true, 400 * time.Millisecond},
		{[]string{"shop.look", "mine"}, "400", true, 0},
	} {
		d := dispatching(t, func(d *mandate) { d.Sequential = tc.sequential })
		calls := `[{"wakes":` + tc.wakes + "," + listOf(tc.calls...)[1:] + "]"
		p, _, err := d.Plan(sandbox.CallsOf([]byte(calls)), continuation.Record{Tools: []string{"mine"}}, time.Now())
		if err != nil || p.Wakes != tc.want {
			t.Errorf("%v with %s: wakes after %v, %v, want %v", tc.calls, tc.wakes, p.Wakes, err, tc.want)
		}
	}
	w := &crew{running: map[int]*served{1: {call: continuation.Call{Number: 1}}}, ready: map[int]*served{}}
	w.rest(map[int]bool{1: true}, time.Hour)
	if results, now := w.results(false); now {
		t.Errorf("before its timer is due the program goes on with %v", results)
	}
	if results, now := w.results(true); !now || len(results) != 1 || results[0].Number != 0 {
		t.Errorf("when its timer is due the program gets %v, %v", results, now)
	}
	if found := w.giveUp(map[int]bool{1: true}); len(found) != 0 {
		t.Errorf("a call that is awaited is given up: %v", found)
	}
	if first, second := w.giveUp(nil), w.giveUp(nil); len(first) != 1 || len(second) != 0 {
		t.Errorf("%d and %d calls are given up, want it once", len(first), len(second))
	}
}

// A plan says which of the client's results are envelopes, whatever the record says.
func TestPlanOfEnvelopes(t *testing.T) {
	d := dispatching(t, func(d *mandate) {
		d.Traits = map[string]core.Traits{"mine": {Envelope: true}, "careful": {Envelope: true, Approval: true}, "other": {Toolset: "own"}}
	})
	pending := []continuation.Call{{Number: 4, ID: "call_001", Envelope: true}}
	p, _, err := d.Plan(callsOf("mine", "careful", "shop.look", "own.other"), continuation.Record{Tools: []string{"mine", "careful", "other"}, Pending: pending, Issued: 1}, time.Now())
	if err != nil || len(p.Asked) != 3 || len(p.Begin) != 1 {
		t.Fatalf("got %q, %v", planned(p), err)
	}
	for i, want := range []bool{true, true, false} {
		if got := p.Asked[i].Entry.Envelope; got != want {
			t.Errorf("call %d: its result is an envelope: %v, want %v", p.Asked[i].Number, got, want)
		}
	}
	if p.Begin[0].Entry.Envelope {
		t.Error("the result of a server's tool is an envelope for the client")
	}
}

// TestPlanLimits reaches the limits of one execution and of one principal.
func TestPlanLimits(t *testing.T) {
	counted := func(p core.Plan) (begin, fail, asked int, refusal string) {
		for _, b := range p.Begin {
			if b.Refusal == "" {
				begin++
				continue
			}
			fail++
			refusal = b.Refusal
		}
		return begin, fail, len(p.Asked), refusal
	}
	plans := func(d *core.Dispatcher, r continuation.Record, call string, n int) (begin, fail, asked int, refusal string) {
		t.Helper()
		p, e, err := d.Plan(callsOf(slices.Repeat([]string{call}, n)...), r, time.Now())
		if err != nil || e.State != "" || len(p.Awaited) != n {
			t.Fatalf("got %+v, %v", e, err)
		}
		return counted(p)
	}
	for call, begun := range map[string]int{"shop.look": 3, "shop.buy": 1} {
		d := dispatching(t, nil)
		begin, fail, _, refusal := plans(d, continuation.Record{}, call, begun+core.MaxWaiting+2)
		if begin != begun || fail != 2 || refusal != fmt.Sprintf(core.TextManyWait, core.MaxWaiting) {
			t.Errorf("%s: %d begin, %d fail: %s", call, begin, fail, refusal)
		}
	}
	d, q := dispatching(t, nil), newQuota(Options{})
	first := q.Adopt("ada", 0)
	d.Ask = first.Ask
	if _, fail, asked, _ := plans(d, continuation.Record{}, "shop.ask", core.MaxAsked+5); asked != core.MaxAsked || fail != 0 {
		t.Errorf("%d calls are asked for, %d fail, want %d and 0", asked, fail, core.MaxAsked)
	}
	other := q.Adopt("ada", 0)
	if !other.Ask(core.MaxAskedOfAll-core.MaxAsked, false) || other.Ask(core.MaxAskedOfAll-core.MaxAsked+1, false) {
		t.Error("the calls of one execution that wait for approval are not counted for the other")
	}
	other.Ask(core.MaxAskedOfAll-10, true) // They count as after a take-over.
	first.Pause()
	first.Run()
	_, fail, asked, refusal := plans(d, continuation.Record{}, "shop.ask", 12)
	if asked != 10 || fail != 2 || refusal != fmt.Sprintf(core.TextManyAsk, core.MaxAskedOfAll) {
		t.Errorf("%d calls are asked for, %d fail: %s", asked, fail, refusal)
	}
	digest := sha256.Sum256([]byte("{}"))
	known := continuation.Record{Issued: 1, Pending: []continuation.Call{
		{Number: 1, ID: "call_001", Toolset: "shop", Tool: "ask", Stage: "asked", Digest: digest[:], Server: true},
	}}
	other.Ask(core.MaxAskedOfAll, true)
	if _, fail, asked, _ := plans(d, known, "shop.ask", 1); asked != 1 || fail != 0 {
		t.Errorf("of a call that was asked for before %d are asked for, %d fail", asked, fail)
	}
	other.Drop()
	first.Drop()
	if q.Principals() != 0 {
		t.Error("the principal is not forgotten")
	}
}

// TestPlanBroken has calls that the runner never sends.
func TestPlanBroken(t *testing.T) {
	d := dispatching(t, nil)
	for _, payload := range []string{
		`[]`, `{}`, `[{"n":1,"toolset":"shop","tool":"look","input":[]}]`,
		`[{"n":1,"toolset":"shop","tool":"look","input":{}},{"n":1,"toolset":"shop","tool":"look","input":{}}]`,
	} {
		if p, e, err := d.Plan(sandbox.CallsOf([]byte(payload)), continuation.Record{}, time.Now()); err == nil && e.State != core.Failed {
			t.Errorf("%s: got %q", payload, planned(p))
		}
	}
}

// TestSettlement has results for calls of which some wait for approval.
func TestSettlement(t *testing.T) {
	yes, no := new(true), new(false)
	pending := []continuation.Call{
		{Number: 1, ID: "call_001", Toolset: "shop", Tool: "ask", Stage: "asked", Server: true},
		{Number: 2, ID: "call_002", Tool: "careful", Stage: "asked"},
		{Number: 3, ID: "call_003", Tool: "mine"},
		{Number: 4, ID: "call_004", Tool: "boss", Stage: "operator", Server: true},
		{Number: 5, ID: "call_005", Tool: "ask", Stage: "refused", Server: true, Reason: "too late"},
		{Number: 6, ID: "call_006", Tool: "ask", Stage: "approved", Server: true},
		// A server that has died has taken these results, with the approvals of their calls.
		{Number: 7, ID: "call_007", Tool: "careful", Stage: "handed", Answered: true},
		{Number: 8, ID: "call_008", Tool: "careful", Answered: true},
	}
	for name, c := range map[string]struct {
		result core.Result
		want   string
	}{
		"approved":                  {core.Result{CallID: "call_001", Approve: yes}, "approved; 5 refused: too late"},
		"refused":                   {core.Result{CallID: "call_001", Approve: no, Reason: "no"}, "refused; 5 refused: too late; 1 refused: no"},
		"refused without a reason":  {core.Result{CallID: "call_001", Approve: no}, "refused; 5 refused: too late; 1 refused"},
		"a bare result":             {core.Result{CallID: "call_001", Given: true}, "call_001 waits for approval: approve must be true or false"},
		"a result beside":           {core.Result{CallID: "call_001", Approve: yes, Given: true}, "call_001 is run by the server: it takes approve and no result"},
		"nothing":                   {core.Result{CallID: "call_002"}, "call_002 waits for approval: approve must be true or false"},
		"a client's, with a result": {core.Result{CallID: "call_002", Approve: yes, Given: true, Value: []byte(`"x"`)}, `approved; 5 refused: too late; 2 "x"`},
		"a client's, bare":          {core.Result{CallID: "call_002", Given: true, Value: []byte(`"x"`)}, `approved; 5 refused: too late; 2 "x"`},
		"none was needed":           {core.Result{CallID: "call_003", Approve: yes}, "call_003 does not wait for approval"},
		"only an operator may":      {core.Result{CallID: "call_004", Approve: yes}, "call_004 waits for the approval of an operator"},
		"decided meanwhile":         {core.Result{CallID: "call_005", Approve: yes}, "; 5 refused: too late"},
		"approved meanwhile":        {core.Result{CallID: "call_006", Given: true}, "; 5 refused: too late"},
		"taken before":              {core.Result{CallID: "call_007", Approve: yes, Given: true, Value: []byte(`"x"`)}, `; 5 refused: too late; 7 "x"`},
		"taken and noted before":    {core.Result{CallID: "call_008", Approve: yes, Given: true, Value: []byte(`"x"`)}, `; 5 refused: too late; 8 "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := core.SettlementOf(pending, []core.Result{c.result})
			var words strings.Builder
			for _, d := range s.Decisions {
				words.WriteString(map[bool]string{true: "approved", false: "refused"}[d.Approve])
			}
			for _, r := range s.Results {
				value := string(r.Value)
				if r.Failed {
					value = strings.Trim(value, `"`)
				}
				fmt.Fprintf(&words, "; %d %s", r.Number, value)
			}
			got := words.String()
			if wrong, ok := errors.AsType[*core.ApprovalError](err); ok {
				got = wrong.CallID + " " + wrong.Problem
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestOwnToolsets puts the client's own tools into the form of toolsets.
func TestOwnToolsets(t *testing.T) {
	s := Start{
		Tools:  []stubs.Tool{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		Traits: map[string]core.Traits{"a": {Toolset: "crm", Class: "CRM"}, "b": {Toolset: "crm"}},
	}
	sets, err := s.own()
	if err != nil || len(sets) != 1 || sets[0].Class != "CRM" || len(sets[0].Tools) != 2 {
		t.Errorf("got %+v, %v", sets, err)
	}
	s.Traits["b"] = core.Traits{Toolset: "crm", Class: "Other"}
	if _, err := s.own(); err == nil {
		t.Error("two classes of one toolset were taken")
	}
}
