package journal

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"fermata/continuation"
)

// A Position is a position in a journal, with the state that results from all events before it. The zero
// value is the position before the first event.
type Position struct {
	// Events is the number of the last event.
	Events int64
	// Rounds counts pauses, Calls counts calls, and Stdout and Stderr count bytes of text.
	Rounds, Calls  int
	Stdout, Stderr int64
	// Open are the calls that have no result.
	Open []CallStarted
	// asked are the calls that have waited for approval, whether or not they were decided on.
	asked map[string]bool
	last  time.Time
}

// Pass moves the position past the next event.
func (p *Position) Pass(e continuation.Event) error {
	var all struct {
		CallStarted
		Stream string `json:"stream"`
		Offset int64  `json:"offset"`
		Text   string `json:"text"`
	}
	if err := json.Unmarshal(e.Content, &all); err != nil {
		return fmt.Errorf("journal: read event %d: %w", e.Seq, err)
	}
	p.Events, p.last = e.Seq, time.Time(all.Time)
	switch all.Type {
	case TypeOutput:
		end := all.Offset + int64(len(all.Text))
		if Stream(all.Stream) == Stdout {
			p.Stdout = end
		} else {
			p.Stderr = end
		}
	case TypePaused:
		p.Rounds++
	case TypeCallStarted, TypeApprovalRequested:
		if p.asked[all.Call] {
			break // The call was approved, and begins now. It is counted already.
		}
		if all.Type == TypeApprovalRequested {
			if p.asked == nil {
				p.asked = map[string]bool{}
			}
			p.asked[all.Call] = true
		}
		p.Calls++
		all.Input = nil
		p.Open = append(p.Open, all.CallStarted)
	case TypeCallCompleted, TypeCallFailed:
		p.Open = slices.DeleteFunc(p.Open, func(c CallStarted) bool { return c.Call == all.Call })
	}
	return nil
}

// Writer returns the Writer of an execution whose journal ends at p. It needs no record of the execution.
func (p *Position) Writer(o Options, s Summary) *Writer {
	return newWriter(o, s, p.Events, state{
		Stdout: [2]int64{0, p.Stdout}, Stderr: [2]int64{0, p.Stderr}, Last: max(1, p.last.UnixMilli()),
	})
}
