package journal

import (
	"encoding/json"
	"fmt"
	"time"

	"fermata/continuation"
)

// MachineRestarted is the text that tells clients why an execution is over if it had not ended when its
// machine was restarted.
const MachineRestarted = "The server's machine was restarted"

// Expire returns the end of the journal of an execution that has expired while no server had it, such as one
// that had not ended when its machine was restarted. r is its last record, and stored its summary.
func (o Options) Expire(r continuation.Record, stored continuation.Summary) (continuation.Chapter, error) {
	var s Summary
	if err := json.Unmarshal(stored.Content, &s); err != nil {
		return continuation.Chapter{}, fmt.Errorf("journal: read the summary of execution %s: %w", stored.ID, err)
	}
	w, err := Continue(o, r, s)
	if err != nil {
		return continuation.Chapter{}, err
	}
	var open []CallStarted
	for _, c := range r.Pending {
		if !c.Answered {
			open = append(open, CallStarted{Head: Head{Time: Moment(c.Started)}, Call: c.ID, Record: s.RecordNameOf(c.ID)})
		}
	}
	Expire(w, open, &Ended{Rounds: r.Round, Calls: r.Issued, Ran: r.Spent.Milliseconds(), Reason: "sandbox_lost", Detail: MachineRestarted})
	return w.Chapter(&r)
}

// Expire adds the end of an execution that has expired, and of the calls that it has left open.
func Expire(w *Writer, open []CallStarted, e *Ended) {
	for _, c := range open {
		w.Note(&CallFailed{
			Call: c.Call, Record: c.Record, Error: w.Text("the execution has ended: expired"), Took: Since(time.Time(c.Time)),
		})
	}
	e.Status = StatusExpired
	w.End(e)
}

// Since returns the milliseconds since t, or 0 if t is not known.
func Since(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(0, time.Since(t).Milliseconds())
}
