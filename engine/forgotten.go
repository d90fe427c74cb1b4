package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"fermata/continuation"
	"fermata/engine/journal"
)

// scanSize is how many bytes of events are read at once.
const scanSize = 1 << 20

// EndForgotten ends the journal of an execution whose record has run out without an end: no server
// was there to end it. It does nothing if the execution has a record, or has ended.
func (e *Engine) EndForgotten(ctx context.Context, id string) error {
	if e.executions.find(id) != nil {
		return nil
	}
	_, err := e.o.Store.Get(ctx, id)
	if !errors.Is(err, continuation.ErrNotFound) {
		return err
	}
	stored, err := e.o.Store.Summary(ctx, id)
	if err != nil || stored.Ended {
		return err
	}
	var s journal.Summary
	if err := json.Unmarshal(stored.Content, &s); err != nil {
		return fmt.Errorf("read the summary of execution %s: %w", id, err)
	}
	var at journal.Position
	for s.Mode != journal.Off {
		events, err := e.o.Store.Events(ctx, id, at.Events, scanSize)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			break
		}
		for _, event := range events {
			if err := at.Pass(event); err != nil {
				return err
			}
		}
	}
	w := at.Writer(e.o.Journal, s)
	for _, c := range at.Open {
		w.Note(&journal.CallFailed{
			Call: c.Call, Record: c.Record, Error: w.Text("the execution has ended: expired"), Took: since(time.Time(c.Time)),
		})
	}
	w.End(&journal.Ended{Status: journal.StatusExpired, Rounds: at.Rounds, Calls: at.Calls, Ran: s.Ran})
	r := continuation.Record{
		ID: id, Session: s.Session, Principal: stored.Principal, State: string(Expired), Version: 1, Created: stored.Created,
		Owner: e.members.instance,
	}
	// Of several servers that notice, the first one writes.
	if err := e.newLedger(r, w).put(ctx, &r); err != nil && !errors.Is(err, continuation.ErrConflict) {
		return err
	}
	return nil
}
