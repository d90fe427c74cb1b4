package journal

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"fermata/continuation"
)

// askedStory returns the events of a program with a call that needed no approval, one that was approved and
// runs again, one that was refused, and one that waits for approval in the second pause.
func askedStory() []Event {
	asked := func(n int) *ApprovalRequested {
		call := fmt.Sprintf("call_00%d", n)
		return &ApprovalRequested{CallStarted{Call: call, Record: "ptc:" + call, Tool: "pay", Runner: RunnerClient, Input: json.RawMessage("{}"), Line: n}}
	}
	return []Event{
		&Started{Execution: testID, Code: json.RawMessage(`"code"`)},
		&CallStarted{Call: "call_001", Record: "ptc:call_001", Tool: "ask", Runner: RunnerServer},
		asked(2), asked(3),
		&Paused{Round: 1, Waiting: []string{"call_002", "call_003"}},
		&Resumed{Round: 1},
		&ApprovalDecided{Call: "call_002", By: "ada", Given: true},
		&ApprovalDecided{Call: "call_003", By: "ada", Reason: "no"},
		&CallFailed{Call: "call_003", Record: "ptc:call_003", Error: "refused: no"},
		asked(4), asked(5),
		&CallStarted{Call: "call_002", Record: "ptc:call_002", Tool: "pay", Runner: RunnerClient},
		&CallStarted{Call: "call_006", Record: "ptc:call_006", Tool: "ask", Runner: RunnerClient},
		&Paused{Round: 2, Waiting: []string{"call_002", "call_004", "call_005"}},
		&ApprovalDecided{Call: "call_005", By: "op", Given: true},
	}
}

func TestApprovalsInDetail(t *testing.T) {
	d, err := find(t, keep(t, Summary{Mode: Full, Status: StatusRunning}, false, askedStory()...)).Detail(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var waiting []string
	for _, w := range d.Waiting {
		waiting = append(waiting, strings.TrimSpace(w.Call+" "+w.Approval))
	}
	if got, want := strings.Join(waiting, ", "), "call_002, call_004 required"; got != want {
		t.Errorf("waiting: %s, want %s", got, want)
	}
	if want := map[string]int{CallIsWaiting: 1, CallIsExecuting: 4, CallIsCompleted: 0, CallHasFailed: 1}; fmt.Sprint(d.States) != fmt.Sprint(want) {
		t.Errorf("states: %v, want %v", d.States, want)
	}
}

// Every call is on one page only, with its latest status, even if it begins after the last event of its page.
func TestApprovalsInPages(t *testing.T) {
	x := find(t, keep(t, Summary{Mode: Full}, false, askedStory()...))
	for limit := 1; limit <= 7; limit++ {
		var got []string
		for after := int64(0); ; {
			page, next, err := x.Calls(t.Context(), after, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page {
				got = append(got, r.Call[len("call_00"):]+" "+r.Status)
			}
			if after = next; next == 0 {
				break
			}
		}
		if want := "1 executing, 2 executing, 3 failed, 4 waiting, 5 executing, 6 executing"; strings.Join(got, ", ") != want {
			t.Errorf("pages of %d: %s, want %s", limit, strings.Join(got, ", "), want)
		}
	}
}

func TestOpenFilterSkipsTheEnded(t *testing.T) {
	ended := Moment(time.Now())
	for status, holds := range map[string]bool{CallIsWaiting: false, CallIsExecuting: false, CallHasFailed: true, "": true} {
		f := CallFilter{Status: status}
		if f.holds(Summary{Mode: Full, Calls: 1, Ended: &ended}) != holds || !f.holds(Summary{Mode: Full}) {
			t.Errorf("status %q: holds an ended one: %v, want %v", status, !holds, holds)
		}
	}
}

func TestApprovalsInPosition(t *testing.T) {
	k := keep(t, Summary{Mode: Full}, false, askedStory()...)
	var p Position
	for _, e := range k.events {
		if err := p.Pass(continuation.Event{Seq: e.Seq, Content: e.Content}); err != nil {
			t.Fatal(err)
		}
	}
	var open []string
	for _, c := range p.Open {
		open = append(open, c.Call[len("call_00"):])
	}
	if p.Calls != 6 || strings.Join(open, " ") != "1 2 4 5 6" {
		t.Errorf("%d calls, open %v", p.Calls, open)
	}
}
