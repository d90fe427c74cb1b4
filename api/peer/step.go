package peer

import (
	"time"

	"fermata/engine/core"
)

// A step is the part of an engine.Step that the other server cannot know. It is for its log.
type step struct {
	Round    int   `json:"round"`
	Calls    int   `json:"calls"`
	Ran      int64 `json:"ran_ms"`
	Waited   int64 `json:"waited_ms"`
	Repeated bool  `json:"repeated,omitzero"`
}

func stepOf(s core.Step) *step {
	if s == (core.Step{}) {
		return nil
	}
	return &step{s.Round, s.Calls, s.Ran.Milliseconds(), s.Waited.Milliseconds(), s.Repeated}
}

func (w *step) step() core.Step {
	if w == nil {
		return core.Step{} // An older server does not tell.
	}
	return core.Step{
		Round: w.Round, Calls: w.Calls, Repeated: w.Repeated,
		Ran: time.Duration(w.Ran) * time.Millisecond, Waited: time.Duration(w.Waited) * time.Millisecond,
	}
}
