package journal

import (
	"encoding/json"
	"fmt"
	"time"

	"fermata/continuation"
)

// Expire returns the end of the journal of an execution that has expired with nobody there to see
// it, such as one that was alive when its machine was restarted. r is its last record, and stored
// its summary.
func (o Options) Expire(r continuation.Record, stored continuation.Summary) (continuation.Chapter, error) {
	var s Summary
	if err := json.Unmarshal(stored.Content, &s); err != nil {
		return continuation.Chapter{}, fmt.Errorf("journal: read the summary of execution %s: %w", stored.ID, err)
	}
	w, err := Continue(o, r, s)
	if err != nil {
		return continuation.Chapter{}, err
	}
	for _, c := range r.Pending {
		if c.Answered {
			continue
		}
		w.Note(&CallFailed{
			Call: c.ID, Record: RecordName(r.ID, c.ID), Error: w.Text("the execution has ended: expired"),
			Took: took(c.Started),
		})
	}
	w.End(&Ended{Status: StatusExpired, Rounds: r.Round, Calls: r.Issued, Ran: r.Spent.Milliseconds()})
	return w.Chapter(&r)
}

// took returns the milliseconds since a call was made, 0 if that is not known.
func took(started time.Time) int64 {
	if started.IsZero() {
		return 0
	}
	return max(0, time.Since(started).Milliseconds())
}
