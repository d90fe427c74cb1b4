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
	// scanned is after how many summaries a page ends, however few of them it holds: a filter
	// that fits nothing must not read a whole store.
	scanned = 10_000
	// pageBytes is the size from which a page takes nothing more, in bytes.
	pageBytes = 8 << 20
	// summariesAtOnce is how many summaries are read at once.
	summariesAtOnce = 200
)

// A Store is what a History reads.
type Store interface {
	// Get returns the live record of an execution, or continuation.ErrNotFound.
	Get(ctx context.Context, id string) (continuation.Record, error)
	continuation.Journals
}

// A History tells what there is to see of executions, those that have ended and those that live,
// on whichever server. Its errors are those of the store. It is safe for concurrent use.
type History struct {
	store Store
	shelf *shelf
	end   func(ctx context.Context, id string) error
}

// NewHistory returns the History of the executions in a store. It calls end for an execution whose
// record has run out without an end.
func NewHistory(store Store, end func(ctx context.Context, id string) error) *History {
	return &History{store, newShelf(store), end}
}

// A Viewer is who looks at executions. An operator sees those of all principals.
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

// Find returns an execution that the viewer may see. Another principal's is
// continuation.ErrNotFound, as is one that never was, after the same work.
func (h *History) Find(ctx context.Context, v Viewer, id string) (*Execution, error) {
	if !validID(id) {
		// This reads from the store as well, so that the time tells nothing of the ids there are.
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

// Await is Find for an execution that is about to begin: it waits until there is something to see.
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

// validID reports whether id is in the form of our ids.
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

// Principal returns who has started the execution.
func (x *Execution) Principal() string { return x.stored.Principal }

// Mode returns how much the journal of the execution keeps.
func (x *Execution) Mode() Mode { return x.known.Mode }

// Summary returns the summary as it is now.
func (x *Execution) Summary(ctx context.Context) (Summary, error) {
	return x.history.current(ctx, x.stored, x.known)
}

// Forget removes what there is to see of an execution that has ended.
func (x *Execution) Forget(ctx context.Context) error {
	return x.history.store.Forget(ctx, x.stored.ID)
}

// Terminal reports whether an execution of this status has ended.
func Terminal(status string) bool { return status != StatusRunning && status != StatusPaused }

// current adds to a summary what its record tells, if the execution lives.
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
		// It has ended since its summary was read, or its record has run out.
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

// ended returns the summary of an execution that should have ended. If it has not, although its
// record has run out, ended ends it.
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

// statusOf returns the status of an execution whose record is in a state of the engine's. It has
// expired if it has no record any more.
func statusOf(state string) string {
	switch state {
	case "":
		return StatusExpired
	case "failed":
		return StatusError
	}
	return state
}

// ServerName returns the name under which clients know the server of an instance. The instance's
// own name tells which machine it is and how often it was started.
func ServerName(instance string) string {
	server, _, _ := strings.Cut(instance, ".")
	sum := sha256.Sum256([]byte("fermata server " + server))
	return hex.EncodeToString(sum[:4])
}

// A Label is a label that an execution must have.
type Label struct{ Key, Value string }

// A Filter says which executions a list holds. What is not set fits all of them.
type Filter struct {
	// Principal is whose executions they are.
	Principal string
	// Statuses are the statuses of which an execution has one.
	Statuses []string
	// Contract is how they were started. Calls without a program have ContractTool, and fit only a
	// filter that asks for it.
	Contract string
	Session  string
	// Labels are those that an execution has all of.
	Labels []Label
	Parent string
	// Tool is one that the execution was granted.
	Tool string
	// They began at Since or later, and before Until.
	Since, Until time.Time
}

// fits reports whether a summary fits all of the filter but the statuses.
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

// List returns up to limit summaries of the executions that fit a filter, the newest first, and
// the place after which the next page begins; nil if there is none.
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
		return len(page) < limit && size < pageBytes, nil
	})
	return page, next, err
}

// A span is a part of the list of executions: those of one principal, or of all if it is empty,
// that began at since or later and before until.
type span struct {
	principal    string
	since, until time.Time
}

// scan calls visit for the executions of a span that the viewer may see, the newest first, until
// visit returns false. It returns the place where it has stopped, or nil at the end of the list.
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
			// One that cannot be read must not hide the others.
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
		if more = len(page) == limit || size >= pageBytes; more {
			return false
		}
		page = append(page, e)
		size += len(e.Content)
		return true
	})
	return page, more, err
}

// walkBytes is how much of a journal is read at once.
const walkBytes = 256 << 10

// walk calls visit for the events after a number, until visit returns false or there are no more.
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
