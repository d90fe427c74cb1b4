package journal

import (
	"cmp"
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

// A CallRecord is everything that is shown of one tool call.
type CallRecord struct {
	ID string `json:"call_id"`
	// Type is CallOfProgram or CallAlone.
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
	// Code and Where are the members of the error in an envelope.
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

// begun returns the record of a call from its first event, which says that the call has begun or that it
// waits for approval.
func (x *Execution) begun(e Entry) (CallRecord, error) {
	var started CallStarted
	if err := e.decode(&started); err != nil {
		return CallRecord{}, err
	}
	kind, _, _ := strings.Cut(started.Record, cmp.Or(x.known.Mark, ":"))
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

// end completes a record with the last event of its call.
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

// call returns the id of the call that an event is about.
func (e Entry) call() string {
	id, err := e.Text("call")
	if err != nil {
		return ""
	}
	return id
}

// madeBefore reports whether a program has made a call before another one, or whether they are the same
// call. The ids of calls are in the order in which they were made.
func madeBefore(call, other string) bool {
	if len(call) != len(other) {
		return len(call) < len(other)
	}
	return call <= other
}

// records returns the records of up to limit calls whose first event comes after the event with number
// after, in the order in which they were made, and whether there are more.
func (x *Execution) records(ctx context.Context, after int64, limit int) (page []CallRecord, more bool, err error) {
	open, size := map[string]int{}, 0
	// newest is the latest call that was read. It may be on the page before.
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
			if i, known := open[call]; known { // The call was approved, and begins now.
				page[i].Status = CallIsExecuting
				break
			}
			if madeBefore(call, newest) {
				break // The call was approved, and is on a page before or has ended.
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

// Calls returns the records of up to limit calls that began after the event with number after, in the order
// in which they were made. next is the number of the event after which the next page begins, or 0 if there
// is no next page.
func (x *Execution) Calls(ctx context.Context, after int64, limit int) (page []CallRecord, next int64, err error) {
	page, more, err := x.records(ctx, after, limit)
	if err != nil {
		return nil, 0, err
	}
	// The size of the page was limited by the inputs only. Now the outputs are known as well.
	if n := fitting(page); n < len(page) {
		page, more = page[:n], true
	}
	if more {
		next = page[len(page)-1].seq
	}
	return page, next, nil
}

// fitting returns for how many of the records a page has room. It has room for at least one.
func fitting(page []CallRecord) int {
	size := 0
	for i, r := range page {
		if size += r.size(); size > pageBytes && i > 0 {
			return i
		}
	}
	return len(page)
}

// size returns the approximate size of a record in an answer, in bytes.
func (r *CallRecord) size() int { return 512 + len(r.Input) + len(r.Output) + len(r.Error) }

// A CallFilter says which calls a list has. A member that is not set matches all calls.
type CallFilter struct {
	// Principal is the principal who has made the calls.
	Principal                     string
	Parent, Toolset, Tool, Status string
	// They began at Since or later, and before Until.
	Since, Until time.Time
}

// holds reports whether an execution may have calls that match the filter.
func (f *CallFilter) holds(s Summary) bool {
	return s.Mode != Off &&
		(f.Parent == "" || f.Parent == s.Parent) &&
		(f.Tool == "" || slices.Contains(s.Tools, f.Tool)) &&
		(s.Ended == nil || s.Calls > 0 && !f.open() && !time.Time(*s.Ended).Before(f.Since))
}

// open reports whether only calls that have not ended match. Executions that have ended have no such calls.
func (f *CallFilter) open() bool { return f.Status == CallIsWaiting || f.Status == CallIsExecuting }

func (f *CallFilter) fits(r CallRecord) bool {
	began := time.Time(r.Created)
	return (f.Toolset == "" || f.Toolset == r.Toolset) &&
		(f.Tool == "" || f.Tool == r.Tool) &&
		(f.Status == "" || f.Status == r.Status) &&
		!began.Before(f.Since) && (f.Until.IsZero() || began.Before(f.Until))
}

// A CallPlace is a place in the list of all calls: after the call that began with event Seq of the
// execution at Place, or after all calls of that execution if Seq is 0.
type CallPlace struct {
	continuation.Place
	Seq int64
}

// scannedCalls is how many calls are read at most for a page, even if only few of them match, since each is
// read from its journal.
const scannedCalls = 20_000

// Calls returns the records of up to limit calls that match a filter. The calls of the newest execution come
// first, and within an execution the newest call. next is the place after which the next page begins, or nil
// if there is no next page.
func (h *History) Calls(ctx context.Context, v Viewer, f CallFilter, after CallPlace, limit int) (page []CallRecord, next *CallPlace, err error) {
	size, looked := 0, 0
	// take adds the calls of one execution that began before an event, and reports whether the page
	// has room for more.
	take := func(x *Execution, before int64) (bool, error) {
		all, _, err := x.records(ctx, 0, math.MaxInt)
		if errors.Is(err, continuation.ErrNotFound) {
			return true, nil // The execution was forgotten meanwhile.
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

// resume takes the calls of the execution at a place that were not on the page before. The place comes from
// the client, so it may name anything.
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

// A callIndex has the number of the event with which each call of an execution began. Its zero value is
// empty. The followers of an execution share it, since it may have ten thousand entries.
type callIndex struct {
	mu    sync.Mutex
	begun map[string]int64
	// upTo is the number of the last event that was read.
	upTo int64
}

// find returns the number of the event with which a call began. If there is none before the event with
// number before, it returns 0.
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

// Call returns the record of the call that an event is about, as it was after that event.
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
