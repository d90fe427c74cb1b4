package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"fermata/continuation"
)

// The statuses of a call record.
const (
	CallIsWaiting   = "waiting"
	CallIsExecuting = "executing"
	CallIsCompleted = "completed"
	CallHasFailed   = "failed"
)

// CallStatuses returns the statuses of call records.
func CallStatuses() []string {
	return []string{CallIsWaiting, CallIsExecuting, CallIsCompleted, CallHasFailed}
}

// A CallRecord is what there is to see of one tool call.
type CallRecord struct {
	ID string `json:"call_id"`
	// Type is where the call came from: CallOfProgram or CallAlone.
	Type string `json:"type"`
	// Parent is the outer call on whose behalf the program runs.
	Parent    *string         `json:"ptc_call_id"`
	Execution string          `json:"execution"`
	Call      string          `json:"call"`
	Session   string          `json:"session,omitempty"`
	Toolset   string          `json:"toolset_id,omitempty"`
	Tool      string          `json:"tool_name"`
	Input     json.RawMessage `json:"input,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
	Error     string          `json:"error,omitempty"`
	// Code and Where are those of the error in an envelope.
	Code    string  `json:"code,omitempty"`
	Where   string  `json:"where,omitempty"`
	Status  string  `json:"status"`
	Runner  string  `json:"runner"`
	Created Moment  `json:"created_at"`
	Ended   *Moment `json:"ended_at,omitempty"`
	Took    *int64  `json:"took_ms,omitempty"`
	Cost    int64   `json:"cost,omitempty"`

	// seq is the number of the event with which the call began.
	seq int64
}

// begun returns the record of a call as its first event tells it: that it has begun, or that it waits
// for approval.
func (x *Execution) begun(e Entry) (CallRecord, error) {
	var started CallStarted
	if err := e.decode(&started); err != nil {
		return CallRecord{}, err
	}
	kind, _, _ := strings.Cut(started.Record, ":")
	r := CallRecord{
		ID: started.Record, Type: kind, Execution: x.stored.ID, Call: started.Call, Session: x.known.Session,
		Toolset: started.Toolset, Tool: started.Tool, Input: started.Input, Status: CallIsExecuting, Runner: started.Runner,
		Created: started.Time, seq: e.Seq,
	}
	if e.Type == TypeApprovalRequested {
		r.Status = CallIsWaiting
	}
	if x.known.Parent != "" {
		r.Parent = &x.known.Parent
	}
	return r, nil
}

// end adds to a record what the last event of its call tells.
func (r *CallRecord) end(e Entry) error {
	switch e.Type {
	case TypeCallCompleted:
		var completed CallCompleted
		if err := e.decode(&completed); err != nil {
			return err
		}
		r.Status, r.Output, r.Ended, r.Took, r.Cost = CallIsCompleted, completed.Output, &completed.Time, &completed.Took, completed.Cost
	case TypeCallFailed:
		var failed CallFailed
		if err := e.decode(&failed); err != nil {
			return err
		}
		r.Status, r.Error, r.Ended, r.Took = CallHasFailed, failed.Error, &failed.Time, &failed.Took
		r.Code, r.Where = failed.Code, failed.Where
	}
	return nil
}

func (e Entry) decode(into any) error {
	if err := json.Unmarshal(e.Content, into); err != nil {
		return fmt.Errorf("journal: read event %d: %w", e.Seq, err)
	}
	return nil
}

// call returns the id of the call of which an event tells.
func (e Entry) call() string {
	id, err := e.Text("call")
	if err != nil {
		return ""
	}
	return id
}

// madeBefore reports whether a program has made a call before another one, or whether they are one: calls
// have their ids in the order made.
func madeBefore(call, other string) bool {
	if len(call) != len(other) {
		return len(call) < len(other)
	}
	return call <= other
}

// records returns the records of up to limit calls whose first event comes after the event with number
// after, in the order made, and whether there are more.
func (x *Execution) records(ctx context.Context, after int64, limit int) (page []CallRecord, more bool, err error) {
	open, size := map[string]int{}, 0
	// newest is the last call that was met, which may be on the page before.
	newest := ""
	var broken error
	err = x.walk(ctx, max(0, after-1), func(e Entry) bool {
		switch e.Type {
		case TypeCallStarted, TypeApprovalRequested:
			call := e.call()
			if e.Seq == after {
				newest = call
				break
			}
			if i, known := open[call]; known { // It has been approved, and begins.
				page[i].Status = CallIsExecuting
				break
			}
			if madeBefore(call, newest) {
				break // It has been approved, and is on a page before, or has ended.
			}
			if more = more || len(page) == limit || size >= pageBytes; more {
				break
			}
			var r CallRecord
			if r, broken = x.begun(e); broken == nil {
				newest = call
				open[call] = len(page)
				page = append(page, r)
				size += len(e.Content)
			}
		case TypeApprovalGiven:
			if i, known := open[e.call()]; known {
				page[i].Status = CallIsExecuting
			}
		case TypeCallCompleted, TypeCallFailed:
			id := e.call()
			if i, known := open[id]; known {
				broken = page[i].end(e)
				size += len(e.Content)
				delete(open, id)
			}
		}
		return broken == nil && (!more || len(open) > 0)
	})
	if err == nil {
		err = broken
	}
	return page, more, err
}

// Calls returns the records of up to limit calls that began after the event with number after, in
// the order made. next is the number after which the next page begins, or 0 if there is none.
func (x *Execution) Calls(ctx context.Context, after int64, limit int) (page []CallRecord, next int64, err error) {
	page, more, err := x.records(ctx, after, limit)
	if err != nil {
		return nil, 0, err
	}
	// The outputs came after the bound on the inputs was checked.
	if n := fitting(page); n < len(page) {
		page, more = page[:n], true
	}
	if more {
		next = page[len(page)-1].seq
	}
	return page, next, nil
}

// fitting returns how many of the records, at least one, a page has room for.
func fitting(page []CallRecord) int {
	size := 0
	for i, r := range page {
		if size += r.size(); size > pageBytes && i > 0 {
			return i
		}
	}
	return len(page)
}

// size returns roughly how many bytes a record has in an answer.
func (r *CallRecord) size() int { return 512 + len(r.Input) + len(r.Output) + len(r.Error) }

// A CallFilter says which calls a list holds. What is not set fits all of them.
type CallFilter struct {
	// Principal is whose calls they are.
	Principal                     string
	Parent, Toolset, Tool, Status string
	// They began at Since or later, and before Until.
	Since, Until time.Time
}

// holds reports whether an execution may have calls that fit.
func (f *CallFilter) holds(s Summary) bool {
	return s.Mode != Off &&
		(f.Parent == "" || f.Parent == s.Parent) &&
		(f.Tool == "" || slices.Contains(s.Tools, f.Tool)) &&
		(s.Ended == nil || s.Calls > 0 && !f.open() && !time.Time(*s.Ended).Before(f.Since))
}

// open reports whether only calls fit that have not ended. Executions that have ended have none.
func (f *CallFilter) open() bool { return f.Status == CallIsWaiting || f.Status == CallIsExecuting }

func (f *CallFilter) fits(r CallRecord) bool {
	began := time.Time(r.Created)
	return (f.Toolset == "" || f.Toolset == r.Toolset) &&
		(f.Tool == "" || f.Tool == r.Tool) &&
		(f.Status == "" || f.Status == r.Status) &&
		!began.Before(f.Since) && (f.Until.IsZero() || began.Before(f.Until))
}

// A CallPlace is a place in the list of all calls: behind the call that began with event Seq of the
// execution at Place, or behind all calls of that execution if Seq is 0.
type CallPlace struct {
	continuation.Place
	Seq int64
}

// scannedCalls is after how many calls a page of calls ends, however few of them it holds: each
// was read from its journal.
const scannedCalls = 20_000

// Calls returns the records of up to limit calls that fit a filter. Those of the newest execution
// come first, and of one execution the newest call. next is the place after which the next page
// begins; nil if there is none.
func (h *History) Calls(ctx context.Context, v Viewer, f CallFilter, after CallPlace, limit int) (page []CallRecord, next *CallPlace, err error) {
	size, looked := 0, 0
	// take adds the calls of one execution that began before an event, and reports whether the page
	// has room for more.
	take := func(x *Execution, before int64) (bool, error) {
		all, _, err := x.records(ctx, 0, math.MaxInt)
		if errors.Is(err, continuation.ErrNotFound) {
			return true, nil // It has been forgotten meanwhile.
		}
		if err != nil {
			return false, err
		}
		looked += len(all)
		for _, r := range slices.Backward(all) {
			if r.seq >= before || !f.fits(r) {
				continue
			}
			if size += r.size(); len(page) == limit || size > pageBytes && len(page) > 0 {
				next = &CallPlace{continuation.Place{Created: x.stored.Created, ID: x.stored.ID}, r.seq + 1}
				return false, nil
			}
			page = append(page, r)
		}
		return looked < scannedCalls, nil
	}
	if after.Seq > 0 {
		more, err := h.resume(ctx, v, f, after, take)
		switch {
		case err != nil || next != nil:
			return page, next, err
		case !more:
			return page, &CallPlace{Place: after.Place}, nil
		}
	}
	place, err := h.scan(ctx, v, span{principal: f.Principal, until: f.Until}, after.Place, func(stored continuation.Summary, s Summary) (bool, error) {
		if !f.holds(s) {
			return true, nil
		}
		return take(&Execution{h, stored, s}, math.MaxInt64)
	})
	if next == nil && place != nil {
		next = &CallPlace{Place: *place}
	}
	return page, next, err
}

// resume takes what the page before has left of the execution at a place. The place comes from the
// client, so it may name anything.
func (h *History) resume(ctx context.Context, v Viewer, f CallFilter, at CallPlace, take func(*Execution, int64) (bool, error)) (bool, error) {
	x, err := h.Find(ctx, v, at.ID)
	if errors.Is(err, continuation.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if f.Principal != "" && f.Principal != x.Principal() || !f.holds(x.known) {
		return true, nil
	}
	return take(x, at.Seq)
}

// A callIndex tells with which event each call of an execution began. Its zero value knows of none.
// The followers of an execution share it: it may have ten thousand entries.
type callIndex struct {
	mu    sync.Mutex
	begun map[string]int64
	// upTo is the number of the last event that was looked at.
	upTo int64
}

// find returns the number of the event with which a call began, before another event, or 0.
func (x *callIndex) find(ctx context.Context, s *shelf, id, call string, before int64) (int64, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.begun == nil {
		x.begun = map[string]int64{}
	}
	for x.upTo < before-1 {
		b, err := s.take(ctx, nil, place{id, x.upTo})
		if err != nil {
			return 0, err
		}
		for _, e := range b.entries {
			if e.Type == TypeCallStarted || e.Type == TypeApprovalRequested {
				x.begun[e.call()] = e.Seq
			}
			x.upTo = e.Seq
		}
		empty := len(b.entries) == 0
		s.release(b)
		if empty {
			break
		}
	}
	return x.begun[call], nil
}

// Call returns the record of the call of which an event tells, as it was with that event.
func (f *Follower) Call(ctx context.Context, e Entry) (CallRecord, error) {
	if e.Type == TypeCallStarted {
		return f.x.begun(e)
	}
	id := f.x.stored.ID
	at, err := f.feed.calls.find(ctx, f.shelf, id, e.call(), e.Seq)
	if err != nil {
		return CallRecord{}, err
	}
	if at == 0 {
		return CallRecord{}, fmt.Errorf("journal: event %d of execution %s tells of a call that has not begun", e.Seq, id)
	}
	b, err := f.shelf.take(ctx, nil, place{id, at - 1})
	if err != nil {
		return CallRecord{}, err
	}
	defer f.shelf.release(b)
	if len(b.entries) == 0 {
		return CallRecord{}, continuation.ErrNotFound
	}
	r, err := f.x.begun(b.entries[0])
	if err != nil {
		return CallRecord{}, err
	}
	return r, r.end(e)
}
