package journal

import (
	"context"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// tailBytes is how many bytes of the end of each stream a Detail has.
const tailBytes = 64 << 10

// A Detail is the summary of an execution and what its journal tells so far. Without a journal it is only
// the summary.
type Detail struct {
	Summary
	Code json.RawMessage `json:"code,omitempty"`
	// Waiting are the calls of a pause for which its client has something to do. It is never nil.
	Waiting []WaitingCall `json:"waiting"`
	// Stdout and Stderr are the last 64 KiB of the two streams, or nil if the journal keeps no output.
	Stdout *string           `json:"stdout,omitempty"`
	Stderr *string           `json:"stderr,omitempty"`
	Files  []json.RawMessage `json:"files,omitempty"`
	// States counts the calls in each status.
	States map[string]int `json:"calls_by_state,omitempty"`
}

// A WaitingCall is a call for whose result, or for whose approval, an execution waits.
type WaitingCall struct {
	Call    string          `json:"call"`
	Tool    string          `json:"tool"`
	Toolset string          `json:"toolset,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	Line    int             `json:"line,omitempty"`
	// Approval is required if the call waits for approval.
	Approval string `json:"approval,omitempty"`
	Since    Moment `json:"since"`
}

// approvalRequired is the Approval of a WaitingCall.
const approvalRequired = "required"

// Detail returns the detail of the execution as it is now.
func (x *Execution) Detail(ctx context.Context) (Detail, error) {
	summary, err := x.Summary(ctx)
	if err != nil || x.known.Mode == Off {
		return Detail{Summary: summary, Waiting: []WaitingCall{}}, err
	}
	v := newView()
	var broken error
	err = x.walk(ctx, 0, func(e Entry) bool {
		broken = v.add(e)
		return broken == nil
	})
	if broken != nil {
		return Detail{}, broken
	}
	d := v.detail(x.known.Mode)
	d.Summary = summary
	if summary.Status != StatusPaused {
		d.Waiting = []WaitingCall{} // The pause began after the summary was read.
	}
	return d, err
}

// A view is the state of an execution after the events so far.
type view struct {
	code json.RawMessage
	open map[string]CallStarted
	// asked are the open calls that wait for approval.
	asked   map[string]bool
	waiting []string
	streams map[string]*tail
	files   []json.RawMessage
	states  map[string]int
}

func newView() *view {
	states := map[string]int{}
	for _, status := range CallStatuses() {
		states[status] = 0
	}
	return &view{
		open:    map[string]CallStarted{},
		asked:   map[string]bool{},
		streams: map[string]*tail{string(Stdout): {}, string(Stderr): {}},
		states:  states,
	}
}

// add applies one more event.
func (v *view) add(e Entry) error {
	switch e.Type {
	case TypeStarted:
		var started Started
		err := e.decode(&started)
		v.code = started.Code
		return err
	case TypeOutput:
		var output Output
		err := e.decode(&output)
		if to := v.streams[output.Stream]; to != nil {
			to.add(output.Text)
		}
		return err
	case TypeCallStarted, TypeApprovalRequested:
		var started CallStarted
		err := e.decode(&started)
		v.close(started.Call) // If the call has waited for approval, it is open already.
		v.open[started.Call] = started
		if e.Type == TypeApprovalRequested {
			v.asked[started.Call] = true
		}
		v.states[v.stateOf(started.Call)]++
		return err
	case TypeApprovalGiven, TypeApprovalRefused:
		v.decide(e.call(), e.Type == TypeApprovalGiven)
	case TypeCallCompleted:
		v.close(e.call())
		v.states[CallIsCompleted]++
	case TypeCallFailed:
		v.close(e.call())
		v.states[CallHasFailed]++
	case TypePaused:
		var paused Paused
		err := e.decode(&paused)
		v.waiting = paused.Waiting
		return err
	case TypeResumed, TypeEnded:
		v.waiting = nil
	case TypeFileStored:
		var stored FileStored
		err := e.decode(&stored)
		v.files = append(v.files, stored.File)
		return err
	}
	return nil
}

// stateOf returns the status of an open call.
func (v *view) stateOf(call string) string {
	if v.asked[call] {
		return CallIsWaiting
	}
	return CallIsExecuting
}

// close removes an open call.
func (v *view) close(call string) {
	if _, open := v.open[call]; open {
		v.states[v.stateOf(call)]--
		delete(v.open, call)
		delete(v.asked, call)
	}
}

// decide notes that somebody has decided on a call, so that the pause does not wait for it any more.
func (v *view) decide(call string, given bool) {
	v.waiting = slices.DeleteFunc(v.waiting, func(id string) bool { return id == call })
	if given && v.asked[call] {
		v.states[CallIsWaiting]--
		delete(v.asked, call)
		v.states[CallIsExecuting]++
	}
}

func (v *view) detail(mode Mode) Detail {
	d := Detail{Waiting: []WaitingCall{}, Code: v.code, Files: v.files, States: v.states}
	for _, id := range v.waiting {
		if c, open := v.open[id]; open {
			w := WaitingCall{c.Call, c.Tool, c.Toolset, c.Input, c.Line, "", c.Time}
			if v.asked[id] {
				w.Approval = approvalRequired
			}
			d.Waiting = append(d.Waiting, w)
		}
	}
	if mode == Full {
		stdout, stderr := v.streams[string(Stdout)].text(), v.streams[string(Stderr)].text()
		d.Stdout, d.Stderr = &stdout, &stderr
	}
	return d
}

// A tail is the end of a stream.
type tail struct{ kept []byte }

func (t *tail) add(text string) {
	t.kept = append(t.kept, text...)
	// The text is truncated rarely, so that small events cost little.
	if len(t.kept) > 4*tailBytes {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-tailBytes:]...)
	}
}

// text returns the last 64 KiB, without an incomplete character at the beginning.
func (t *tail) text() string {
	kept := t.kept
	if len(kept) > tailBytes {
		kept = kept[len(kept)-tailBytes:]
	}
	for len(kept) > 0 && !utf8.RuneStart(kept[0]) {
		kept = kept[1:]
	}
	return string(kept)
}
