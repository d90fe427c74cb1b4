package timeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"fermata/engine/journal"
	"fermata/engine/outputs"
)

// Facts are what a timeline needs to know about an execution. They are taken from the events of its journal,
// and keep only as much of them as the timeline shows.
type Facts struct {
	started journal.Started
	judged  []judgement
	ended   *journal.Ended
	stdout  printed
	stderr  printed
	calls   map[string]*call
	// inner is the number of bytes of inner calls that are kept.
	inner int
}

// A judgement says what has become of an output of the contract, and when it was judged.
type judgement struct {
	outputs.Judged
	at journal.Moment
}

// A call is an inner call: one that the program has made.
type call struct {
	journal.CallStarted
	// ended is when the call has ended, nil if it has not; output and failed tell how.
	output json.RawMessage
	failed *journal.CallFailed
	ended  *journal.Moment
	// cut is true if there was no room to keep the output or the input.
	cut       bool
	artifacts []journal.ArtifactStored
}

// Add takes one more event into account.
func (f *Facts) Add(e journal.Entry) error {
	err := f.add(e)
	if err != nil {
		return fmt.Errorf("timeline: read event %d: %w", e.Seq, err)
	}
	return nil
}

func (f *Facts) add(e journal.Entry) error {
	switch e.Type {
	case journal.TypeStarted:
		return json.Unmarshal(e.Content, &f.started)
	case journal.TypeOutput:
		var o journal.Output
		err := json.Unmarshal(e.Content, &o)
		if o.Stream == string(journal.Stdout) {
			f.stdout.add(o.Text)
		} else {
			f.stderr.add(o.Text)
		}
		return err
	case journal.TypeCallStarted, journal.TypeApprovalRequested:
		return f.begun(e)
	case journal.TypeCallCompleted, journal.TypeCallFailed, journal.TypeArtifactStored:
		return f.about(e)
	case journal.TypeOutputJudged:
		var o journal.OutputJudged
		j := judgement{}
		if err := json.Unmarshal(e.Content, &o); err != nil {
			return err
		}
		j.at = o.Time
		err := json.Unmarshal(o.Output, &j.Judged)
		f.judged = append(f.judged, j)
		return err
	case journal.TypeEnded:
		f.ended = &journal.Ended{}
		return json.Unmarshal(e.Content, f.ended)
	}
	return nil
}

// begun notes the beginning of a call. A call that has waited for approval begins a second time.
func (f *Facts) begun(e journal.Entry) error {
	var c journal.CallStarted
	if err := json.Unmarshal(e.Content, &c); err != nil {
		return err
	}
	if f.calls[c.Call] != nil {
		return nil
	}
	if f.calls == nil {
		f.calls = map[string]*call{}
	}
	known := &call{CallStarted: c}
	if !f.keep(len(c.Input)) {
		known.Input, known.cut = nil, true
	}
	f.calls[c.Call] = known
	return nil
}

// about notes an event of a call that has begun.
func (f *Facts) about(e journal.Entry) error {
	id, err := e.Text("call")
	if err != nil {
		return err
	}
	c := f.calls[id]
	if c == nil {
		return nil // The store has lost the beginning of the journal.
	}
	switch e.Type {
	case journal.TypeArtifactStored:
		var a journal.ArtifactStored
		err = json.Unmarshal(e.Content, &a)
		c.artifacts = append(c.artifacts, a)
	case journal.TypeCallFailed:
		c.failed = &journal.CallFailed{}
		err = json.Unmarshal(e.Content, c.failed)
		c.ended = &c.failed.Time
		if !f.keep(len(c.failed.Error)) {
			c.failed.Error = outputs.Cut(c.failed.Error, maxLate)
		}
	default:
		var done journal.CallCompleted
		err = json.Unmarshal(e.Content, &done)
		c.output, c.ended = done.Output, &done.Time
		if !f.keep(len(c.output)) {
			c.output, c.cut = nil, true
		}
	}
	return err
}

// keep reports whether there is room for n more bytes of inner calls. If there is, it counts them as kept.
func (f *Facts) keep(n int) bool {
	if f.inner+n > maxInner {
		return false
	}
	f.inner += n
	return true
}

// made returns the inner calls in the order in which they were made, which is that of their ids.
func (f *Facts) made() []*call {
	calls := make([]*call, 0, len(f.calls))
	for _, c := range f.calls {
		calls = append(calls, c)
	}
	slices.SortFunc(calls, func(a, b *call) int {
		return cmp.Or(cmp.Compare(len(a.Call), len(b.Call)), cmp.Compare(a.Call, b.Call))
	})
	return calls
}

// Size returns the approximate size of the facts in bytes.
func (f *Facts) Size() int64 {
	return int64(f.inner + len(f.started.Code) + len(f.started.Outputs) + len(f.stdout.head) + cap(f.stdout.tail) + cap(f.stderr.tail))
}

// Session returns the session of the execution.
func (f *Facts) Session() string { return f.started.Session }

// Named reports whether the start has the member timeline.
func (f *Facts) Named() bool { return !outputs.Absent(f.started.Timeline) }

// Names returns the names that the start has given to its timeline.
func (f *Facts) Names() (Names, error) {
	return ParseNames(f.started.Timeline, f.started.Language == "bash")
}

// contract returns the contract of outputs, with the turn of the timeline.
func (f *Facts) contract(n Names) (outputs.Contract, error) {
	// A path may begin with the directory of the turn that the start has named.
	own, err := f.Names()
	if err != nil || outputs.Absent(f.started.Outputs) {
		return outputs.Contract{}, err
	}
	list, err := outputs.Parse(f.started.Outputs, own.Turn)
	return outputs.Contract{Outputs: list, Turn: n.Turn, Log: n.Log}, err
}

// end returns how the execution has ended.
func (f *Facts) end() outputs.End {
	return outputs.End{
		Status: f.ended.Status, Reason: f.ended.Reason, Error: cmp.Or(f.ended.Raised, f.ended.Error),
		Stdout: string(f.stdout.tail), Stderr: string(f.stderr.tail),
	}
}

// printed keeps the beginning and the end of a stream.
type printed struct {
	head, tail []byte
	size       int64
}

// tailBytes is how many bytes of the end of a stream are kept. It is more than reports show.
const tailBytes = 16 << 10

func (p *printed) add(text string) {
	p.size += int64(len(text))
	p.head = append(p.head, text[:min(len(text), max(0, maxText+1-len(p.head)))]...)
	p.tail = append(p.tail, text...)
	p.tail = append(p.tail[:0], p.tail[max(0, len(p.tail)-tailBytes):]...)
}
