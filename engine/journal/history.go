package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"fermata/continuation"
)

const (
	// scanned is how many summaries are read at most for a page, even if only few of them match: a filter
	// that matches nothing must not read the whole store.
	scanned = 10_000
	// pageBytes is the most bytes of a page. Only a page of one entry may have more.
	pageBytes = 1 << 20
	// summaryBytes is more than a summary has in an answer.
	summaryBytes = 64 << 10
	// summariesAtOnce is how many summaries are read at once.
	summariesAtOnce = 200
)

// A Store is what a History reads.
type Store interface {
	// Get returns the live record of an execution, or continuation.ErrNotFound.
	Get(ctx context.Context, id string) (continuation.Record, error)
	continuation.Journals
}

// A History reads the journals of executions on all servers, of those that have ended and of those that have
// not. Its errors come from the store. It is safe for concurrent use.
type History struct {
	store Store
	shelf *shelf
	end   func(ctx context.Context, id string) error
}

// NewHistory returns the History of the executions in a store. It calls end for an execution whose record
// has expired although the execution has not ended.
func NewHistory(store Store, end func(ctx context.Context, id string) error) *History {
	return &History{store, newShelf(store), end}
}

// A Viewer is the principal who looks at executions. An operator sees the executions of all principals.
type Viewer struct {
	Principal string
	Operator  bool
}

func (v Viewer) sees(s continuation.Summary) bool { return v.Operator || s.Principal == v.Principal }

// An Execution is an execution that its viewer may see.
type Execution struct {
	history *History
	stored  continuation.Summary
	known   Summary
}

// Find returns an execution that the viewer may see. For an execution of another principal, and for one that
// does not exist, the error is continuation.ErrNotFound, and both take the same time.
func (h *History) Find(ctx context.Context, v Viewer, id string) (*Execution, error) {
	if !validID(id) {
		// This id is looked up as well, so that the time does not tell which ids exist.
		id = uuid.Nil.String()
	}
	stored, err := h.store.Summary(ctx, id)
	if err == nil && !v.sees(stored) {
		err = continuation.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	known, err := decodeSummary(stored)
	if err != nil {
		return nil, err
	}
	return &Execution{h, stored, known}, nil
}

// Await is like Find, for an execution that is about to begin: it waits until the execution can be found.
func (h *History) Await(ctx context.Context, v Viewer, id string) (*Execution, error) {
	if x, err := h.Find(ctx, v, id); !errors.Is(err, continuation.ErrNotFound) {
		return x, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	grown, err := h.store.Watch(ctx, id)
	if err != nil {
		return nil, err
	}
	for {
		if x, err := h.Find(ctx, v, id); !errors.Is(err, continuation.ErrNotFound) {
			return x, err
		}
		select {
		case <-grown:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// validID reports whether id has the form of the ids of executions.
func validID(id string) bool {
	u, err := uuid.Parse(id)
	return err == nil && u.String() == id
}

// decodeSummary returns the content of a stored summary.
func decodeSummary(stored continuation.Summary) (Summary, error) {
	var s Summary
	if err := json.Unmarshal(stored.Content, &s); err != nil {
		return Summary{}, fmt.Errorf("journal: read the summary of execution %s: %w", stored.ID, err)
	}
	s.ID, s.Principal = stored.ID, stored.Principal
	return s, nil
}

// ID returns the id of the execution.
func (x *Execution) ID() string { return x.stored.ID }

// Ended reports whether the execution had ended when it was found.
func (x *Execution) Ended() bool { return x.stored.Ended }

// Principal returns the principal who has started the execution.
func (x *Execution) Principal() string { return x.stored.Principal }

// Mode returns how much the journal of the execution keeps.
func (x *Execution) Mode() Mode { return x.known.Mode }

// Summary returns the summary as it is now.
func (x *Execution) Summary(ctx context.Context) (Summary, error) {
	return x.history.current(ctx, x.stored, x.known)
}

// Forget removes the journal and the summary of an execution that has ended.
func (x *Execution) Forget(ctx context.Context) error {
	return x.history.store.Forget(ctx, x.stored.ID)
}

// Terminal reports whether an execution of this status has ended.
func Terminal(status string) bool { return status != StatusRunning && status != StatusPaused }

// current updates a summary from the record of its execution, if the execution has not ended.
func (h *History) current(ctx context.Context, stored continuation.Summary, s Summary) (Summary, error) {
	if stored.Ended {
		return s, nil
	}
	record, err := h.store.Get(ctx, stored.ID)
	forgotten := errors.Is(err, continuation.ErrNotFound)
	if err != nil && !forgotten {
		return Summary{}, err
	}
	status := statusOf(record.State)
	if Terminal(status) {
		// The execution has ended since its summary was read, or its record has expired.
		again, err := h.ended(ctx, stored.ID, forgotten)
		if err != nil && !errors.Is(err, continuation.ErrNotFound) {
			return Summary{}, err
		}
		if err == nil && again.Ended {
			return decodeSummary(again)
		}
	}
	s.Status = status
	if forgotten {
		return s, nil
	}
	s.Rounds, s.Calls, s.Ran = record.Round, record.Issued, record.Spent.Milliseconds()
	s.Server = ServerName(record.Owner)
	if status == StatusPaused {
		expires := Moment(record.Deadline)
		s.PauseExpires = &expires
	}
	return s, nil
}

// ended returns the summary of an execution that should have ended. If the record of the execution has
// expired although the execution has not ended, ended ends it.
func (h *History) ended(ctx context.Context, id string, forgotten bool) (continuation.Summary, error) {
	stored, err := h.store.Summary(ctx, id)
	if err != nil || stored.Ended || !forgotten {
		return stored, err
	}
	if err := h.end(ctx, id); err != nil {
		return stored, err
	}
	return h.store.Summary(ctx, id)
}

// statusOf returns the status of an execution from the state in its record. Without a record it has expired.
func statusOf(state string) string {
	switch state {
	case "":
		return StatusExpired
	case "failed":
		return StatusError
	}
	return state
}

// ServerName returns the name of the server of an instance for clients. The name of the instance itself is
// not shown, since it tells the machine and how often the server was started.
func ServerName(instance string) string {
	server, _, _ := strings.Cut(instance, ".")
	sum := sha256.Sum256([]byte("fermata server " + server))
	return hex.EncodeToString(sum[:4])
}

// A Label is a label that an execution must have.
type Label struct{ Key, Value string }

// A Filter says which executions a list has. A member that is not set matches all executions.
type Filter struct {
	// Principal is the principal who has started the executions.
	Principal string
	// Statuses are the statuses of the executions.
	Statuses []string
	// Contract is the contract under which they were started. Calls without a program have ContractTool, and
	// match only if Contract is ContractTool.
	Contract string
	Session  string
	// Labels are labels of the executions. An execution must have all of them.
	Labels []Label
	Parent string
	// Tool is a tool that was granted to the executions.
	Tool string
	// They began at Since or later, and before Until.
	Since, Until time.Time
}

// fits reports whether a summary matches the filter, apart from its statuses.
func (f *Filter) fits(s Summary) bool {
	for _, l := range f.Labels {
		if value, labelled := s.Labels[l.Key]; !labelled || value != l.Value {
			return false
		}
	}
	return (f.Contract == s.Contract || f.Contract == "" && s.Contract != ContractTool) &&
		(f.Session == "" || f.Session == s.Session) &&
		(f.Parent == "" || f.Parent == s.Parent) &&
		(f.Tool == "" || slices.Contains(s.Tools, f.Tool))
}

// List returns up to limit summaries of the executions that match a filter, the newest first, and the place
// after which the next page begins, or nil if there is no next page.
func (h *History) List(ctx context.Context, v Viewer, f Filter, after continuation.Place, limit int) (page []Summary, next *continuation.Place, err error) {
	size := 0
	next, err = h.scan(ctx, v, span{f.Principal, f.Since, f.Until}, after, func(stored continuation.Summary, s Summary) (more bool, err error) {
		if !f.fits(s) {
			return true, nil
		}
		if s, err = h.current(ctx, stored, s); err != nil {
			return false, err
		}
		if len(f.Statuses) > 0 && !slices.Contains(f.Statuses, s.Status) {
			return true, nil
		}
		page = append(page, s)
		size += len(stored.Content)
		return len(page) < limit && size+summaryBytes < pageBytes, nil
	})
	return page, next, err
}

// A span is a part of the list of executions: those that a principal, or any principal if it is empty, has
// started at since or later and before until.
type span struct {
	principal    string
	since, until time.Time
}

// scan calls visit for the executions of a span that the viewer may see, the newest first, until
// visit returns false. It returns the place at which it has stopped, or nil at the end of the list.
func (h *History) scan(ctx context.Context, v Viewer, in span, after continuation.Place, visit func(continuation.Summary, Summary) (bool, error)) (*continuation.Place, error) {
	principal := v.Principal
	if v.Operator {
		principal = in.principal
	}
	if start := (continuation.Place{Created: in.until}); !in.until.IsZero() && (after.Created.IsZero() || after.Created.After(in.until)) {
		after = start
	}
	for looked := 0; ; {
		batch, err := h.store.Summaries(ctx, principal, principal == "" && v.Operator, after, summariesAtOnce)
		if err != nil {
			return nil, err
		}
		for i, stored := range batch {
			after = continuation.Place{Created: stored.Created, ID: stored.ID}
			if stored.Created.Before(in.since) {
				return nil, nil
			}
			more := true
			s, err := decodeSummary(stored)
			// A summary that cannot be read must not hide the others.
			if err == nil && v.sees(stored) && (in.until.IsZero() || stored.Created.Before(in.until)) {
				if more, err = visit(stored, s); err != nil {
					return nil, err
				}
			}
			last := i == len(batch)-1 && len(batch) < summariesAtOnce
			if looked++; (!more || looked >= scanned) && !last {
				return &after, nil
			}
			if !more {
				return nil, nil
			}
		}
		if len(batch) < summariesAtOnce {
			return nil, nil
		}
	}
}

// Events returns up to limit events of an execution after the one with number after, and reports
// whether there are more now.
func (x *Execution) Events(ctx context.Context, after int64, limit int) (page []Entry, more bool, err error) {
	size := 0
	err = x.walk(ctx, after, func(e Entry) bool {
		size += len(e.Content) + 1
		if more = len(page) == limit || size > pageBytes && len(page) > 0; more {
			return false
		}
		page = append(page, e)
		return true
	})
	return page, more, err
}

// walkBytes is how many bytes of a journal are read at once.
const walkBytes = 256 << 10

// walk calls visit for the events after a number, until visit returns false or there are no more events.
func (x *Execution) walk(ctx context.Context, after int64, visit func(Entry) bool) error {
	if x.known.Mode == Off {
		return continuation.ErrNotFound
	}
	for {
		events, err := x.history.store.Events(ctx, x.stored.ID, after, walkBytes)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return nil
		}
		for _, e := range entries(events) {
			if !visit(e) {
				return nil
			}
			after = e.Seq
		}
	}
}
