package journal

import (
	"context"
	"encoding/json"
	"unicode/utf8"
)

// tailBytes is how much of the end of each stream a Detail holds, in bytes.
const tailBytes = 64 << 10

// A Detail is a summary with what a journal tells of its execution so far. Without a journal it is
// the summary alone.
type Detail struct {
	Summary
	Code json.RawMessage `json:"code,omitempty"`
	// Waiting are the calls of a pause.
	Waiting []WaitingCall `json:"waiting,omitempty"`
	// Stdout and Stderr are the last 64 KiB of the two streams; nil if the journal keeps no output.
	Stdout *string           `json:"stdout,omitempty"`
	Stderr *string           `json:"stderr,omitempty"`
	Files  []json.RawMessage `json:"files,omitempty"`
	// States counts the calls in each status.
	States map[string]int `json:"calls_by_state,omitempty"`
}

// A WaitingCall is a call for whose result an execution waits.
type WaitingCall struct {
	Call    string          `json:"call"`
	Tool    string          `json:"tool"`
	Toolset string          `json:"toolset,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	Line    int             `json:"line,omitempty"`
	Since   Moment          `json:"since"`
}

// Detail returns the detail of the execution as it is now.
func (x *Execution) Detail(ctx context.Context) (Detail, error) {
	summary, err := x.Summary(ctx)
	if err != nil || x.known.Mode == Off {
		return Detail{Summary: summary}, err
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
		d.Waiting = nil // The pause has begun after the summary was read.
	}
	return d, err
}

// A view is what the events so far tell.
type view struct {
	code    json.RawMessage
	open    map[string]CallStarted
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
		streams: map[string]*tail{string(Stdout): {}, string(Stderr): {}},
		states:  states,
	}
}

// add adds what one more event tells.
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
	case TypeCallStarted:
		var started CallStarted
		err := e.decode(&started)
		v.open[started.Call] = started
		v.states[CallIsExecuting]++
		return err
	case TypeCallCompleted, TypeCallFailed:
		call := e.call()
		if _, open := v.open[call]; open {
			delete(v.open, call)
			v.states[CallIsExecuting]--
		}
		if e.Type == TypeCallCompleted {
			v.states[CallIsCompleted]++
		} else {
			v.states[CallHasFailed]++
		}
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

func (v *view) detail(mode Mode) Detail {
	d := Detail{Code: v.code, Files: v.files, States: v.states}
	for _, id := range v.waiting {
		if c, open := v.open[id]; open {
			d.Waiting = append(d.Waiting, WaitingCall{c.Call, c.Tool, c.Toolset, c.Input, c.Line, c.Time})
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
	// It is cut seldom, so that little events cost little.
	if len(t.kept) > 4*tailBytes {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-tailBytes:]...)
	}
}

// text returns the last 64 KiB, less the rest of a character that was cut.
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
