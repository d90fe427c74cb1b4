package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/continuation"
)

const (
	// batchBytes is how much of a journal a follower holds at once, in bytes. One event may be
	// larger.
	batchBytes = 32 << 10
	// readTimeout bounds a read for which several followers may wait.
	readTimeout = 10 * time.Second
)

// An Entry is an event as it is stored. Content is a JSON object without line breaks.
type Entry struct {
	Seq     int64
	Type    string
	Content json.RawMessage
}

// entries returns stored events with their types.
func entries(events []continuation.Event) []Entry {
	list := make([]Entry, len(events))
	for i, e := range events {
		list[i] = Entry{e.Seq, typeIn(e.Content), e.Content}
	}
	return list
}

// typeIn returns the type of an encoded event, empty if it has none.
func typeIn(content []byte) string {
	text, err := Entry{Content: content}.Text("type")
	if err != nil {
		return ""
	}
	return text
}

// Text returns the member of an event that is a text. It reads no further than that: what may be
// large stands at the end of events.
func (e Entry) Text(name string) (string, error) {
	d := jsontext.NewDecoder(bytes.NewReader(e.Content), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadToken(); err != nil {
		return "", err
	}
	for {
		token, err := d.ReadToken()
		if err != nil {
			return "", err
		}
		if token.Kind() != jsontext.KindString {
			return "", fmt.Errorf("journal: event %d has no %s", e.Seq, name)
		}
		if token.String() == name {
			value, err := d.ReadToken()
			return value.String(), err
		}
		if err := d.SkipValue(); err != nil {
			return "", err
		}
	}
}

// A Follower reads the events of an execution one after the other, as they come. It keeps its place
// and no events of its own: followers at the same place share what they have read. It is for one
// goroutine.
type Follower struct {
	x     *Execution
	ctx   context.Context //nolint:containedctx // it ends the watch, which outlives each call of Next
	stop  context.CancelFunc
	after int64
	held  *batch
	// grown receives when there may be new events; nil before the follower has had to wait.
	grown <-chan struct{}
	// sure is true if the last that was read was not nothing, so that the end cannot have passed
	// unseen.
	sure, ended bool
	calls       *callIndex
}

// Follow returns a Follower of the events after a number. It ends when ctx ends, and must be closed.
func (x *Execution) Follow(ctx context.Context, after int64) *Follower {
	ctx, stop := context.WithCancel(ctx)
	return &Follower{x: x, ctx: ctx, stop: stop, after: after}
}

// Close ends the Follower.
func (f *Follower) Close() {
	f.release()
	f.stop()
	if f.calls != nil {
		f.x.history.shelf.dropIndex(f.x.stored.ID)
	}
}

func (f *Follower) release() {
	if f.held != nil {
		f.x.history.shelf.release(f.held)
		f.held = nil
	}
}

// Ready returns the events that are stored now, up to some 32 KiB of them, or none. They are valid
// until the next call. After the last event of an execution the error is io.EOF.
func (f *Follower) Ready(ctx context.Context) ([]Entry, error) {
	f.release()
	if f.ended || f.x.known.Mode == Off {
		return nil, io.EOF
	}
	b, err := f.x.history.shelf.take(ctx, place{f.x.stored.ID, f.after})
	if errors.Is(err, continuation.ErrNotFound) {
		return nil, io.EOF // It has been forgotten meanwhile.
	}
	if err != nil || len(b.entries) == 0 {
		return nil, err
	}
	last := b.entries[len(b.entries)-1]
	f.held, f.after, f.ended, f.sure = b, last.Seq, last.Type == TypeEnded, true
	return b.entries, nil
}

// Next returns the next events, up to some 32 KiB of them. It waits for them until ctx ends. They
// are valid until the next call. After the last event of the execution the error is io.EOF.
func (f *Follower) Next(ctx context.Context) ([]Entry, error) {
	for {
		list, err := f.Ready(ctx)
		if err != nil || len(list) > 0 {
			return list, err
		}
		if f.grown == nil {
			if f.grown, err = f.x.history.store.Watch(f.ctx, f.x.stored.ID); err != nil {
				return nil, err
			}
			continue // Something may have come before the watch began.
		}
		if !f.sure {
			if over, err := f.over(ctx); over || err != nil {
				return nil, err
			}
			f.sure = true
			continue
		}
		select {
		case _, open := <-f.grown:
			if !open {
				return nil, io.EOF
			}
			// If nothing has come after all, the end may be before the place of this follower.
			f.sure = false
		case <-ctx.Done():
			f.sure = false
			return nil, ctx.Err()
		}
	}
}

// over reports with io.EOF whether the execution has ended and left nothing to read.
func (f *Follower) over(ctx context.Context) (bool, error) {
	stored, err := f.x.history.store.Summary(ctx, f.x.stored.ID)
	if err == nil && !stored.Ended {
		// If its record has run out, it ends now.
		var s Summary
		s, err = f.x.history.current(ctx, stored, f.x.known)
		stored.Ended = Terminal(s.Status)
	}
	switch {
	case errors.Is(err, continuation.ErrNotFound):
		return true, io.EOF
	case err != nil || !stored.Ended:
		return false, err
	}
	// The end and the events before it may have come after the last look.
	b, err := f.x.history.shelf.take(ctx, place{f.x.stored.ID, f.after})
	if err != nil {
		return false, err
	}
	defer f.x.history.shelf.release(b)
	if len(b.entries) == 0 {
		return true, io.EOF
	}
	return false, nil
}

// A shelf has the parts of journals that followers read now, so that a thousand of them at one
// place take the memory, and the reads, of one.
type shelf struct {
	store Store

	mu      sync.Mutex
	batches map[place]*batch
	indexes map[string]*callIndex
}

func newShelf(store Store) *shelf {
	return &shelf{store: store, batches: map[place]*batch{}, indexes: map[string]*callIndex{}}
}

// A place is a place in a journal: behind the event with number after.
type place struct {
	id    string
	after int64
}

// A batch is what was read at a place.
type batch struct {
	at      place
	holders int // shelf.mu guards it
	// read is closed when entries and err are set.
	read    chan struct{}
	entries []Entry
	err     error
}

// take returns what is stored behind a place, which may be nothing. The caller must release it
// unless it is empty.
func (s *shelf) take(ctx context.Context, at place) (*batch, error) {
	for repeated := false; ; repeated = true {
		s.mu.Lock()
		b, shared := s.batches[at]
		if !shared {
			b = &batch{at: at, read: make(chan struct{})}
			s.batches[at] = b
		}
		b.holders++
		s.mu.Unlock()
		if !shared {
			s.read(ctx, b)
		}
		select {
		case <-b.read:
		case <-ctx.Done():
			s.release(b)
			return nil, ctx.Err()
		}
		if b.err != nil {
			return nil, b.err
		}
		if len(b.entries) > 0 || !shared || repeated {
			return b, nil
		}
		// That read may have begun before the events came of which this caller has heard. One
		// that begins from now on has not.
	}
}

// read reads what is stored behind the place of a batch. What is empty or broken is of no use to
// those who come later.
func (s *shelf) read(ctx context.Context, b *batch) {
	// Others may wait for this read, so it does not end with the caller.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	events, err := s.store.Events(ctx, b.at.id, b.at.after, batchBytes)
	b.entries, b.err = entries(events), err
	if len(b.entries) == 0 {
		s.mu.Lock()
		delete(s.batches, b.at)
		s.mu.Unlock()
	}
	close(b.read)
}

func (s *shelf) release(b *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.holders--; b.holders == 0 && s.batches[b.at] == b {
		delete(s.batches, b.at)
	}
}
