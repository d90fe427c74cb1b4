package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
)

// endForgotten is Engine.EndForgotten.
func (s *successor) endForgotten(ctx context.Context, id string) error {
	if s.executions.find(id) != nil {
		return nil
	}
	_, err := s.o.Store.Get(ctx, id)
	if !errors.Is(err, continuation.ErrNotFound) {
		return err
	}
	stored, err := s.o.Store.Summary(ctx, id)
	if err != nil || stored.Ended {
		return err
	}
	var summary journal.Summary
	if err := json.Unmarshal(stored.Content, &summary); err != nil {
		return fmt.Errorf("read the summary of execution %s: %w", id, err)
	}
	var at journal.Position
	for summary.Mode != journal.Off {
		events, err := s.o.Store.Events(ctx, id, at.Events, scanSize)
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
	w := at.Writer(s.o.Journal, summary)
	journal.Expire(w, at.Open, &journal.Ended{Rounds: at.Rounds, Calls: at.Calls, Ran: summary.Ran})
	r := continuation.Record{
		ID: id, Session: summary.Session, Principal: stored.Principal, State: string(core.Expired), Version: 1, Created: stored.Created,
		Owner: s.members.Instance(),
	}
	// Of several servers that notice, the first one writes.
	err = s.newLedger(r, &chronicle{Writer: w, id: id}).writer().put(ctx, &r)
	if err == nil {
		r.Round, r.Issued, r.Spent = at.Rounds, at.Calls, time.Duration(summary.Ran)*time.Millisecond
		s.o.logForgotten(r)
	}
	if errors.Is(err, continuation.ErrConflict) {
		return nil
	}
	return err
}
