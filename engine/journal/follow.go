package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/continuation"
)

const (
	// batchBytes is how many bytes of a journal a follower holds at once, unless one event is larger.
	batchBytes = 16 << 10
	// recentBytes is how many bytes of the end of a journal are kept while it has followers, since they do
	// not all read it at the same moment.
	recentBytes = 256 << 10
	// readTimeout is how long a read may take for which several followers may wait.
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

// typeIn returns the type of an encoded event, or "" if it has none.
func typeIn(content []byte) string {
	text, err := Entry{Content: content}.Text("type")
	if err != nil {
		return ""
	}
	return text
}

// Text returns a member of an event whose value is a string. It does not read what follows the member, since
// members that may be large are at the end of events.
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

// ErrQuiet means that no event has arrived for as long as a Follower was to wait.
var ErrQuiet = errors.New("journal: nothing has come")

// A Follower reads the events of an execution one after the other, as they are written. It keeps its place
// but no events of its own: followers at the same place share what they have read. It is for one goroutine.
type Follower struct {
	x     *Execution
	shelf *shelf
	feed  *feed
	after int64
	held  *batch
	quiet *time.Timer
	// checked is true if the execution had not ended when the follower last began to wait. It is needed
	// because the last event may come before the place of the follower.
	checked, ended bool
}

// Follow returns a Follower of the events after the one with number after. It must be closed.
func (x *Execution) Follow(ctx context.Context, after int64) (*Follower, error) {
	feed, err := x.history.shelf.follow(ctx, x.stored.ID, !x.stored.Ended)
	if err != nil {
		return nil, err
	}
	return &Follower{x: x, shelf: x.history.shelf, feed: feed, after: after}, nil
}

// Close ends the Follower.
func (f *Follower) Close() {
	f.release()
	f.shelf.leave(f.feed)
	if f.quiet != nil {
		f.quiet.Stop()
	}
}

func (f *Follower) release() {
	if f.held != nil {
		f.shelf.release(f.held)
		f.held = nil
	}
}

// Ready returns the events that are stored now, up to some 16 KiB of them, or none. They are valid
// until the next call. After the last event of an execution the error is io.EOF.
func (f *Follower) Ready(ctx context.Context) ([]Entry, error) { return f.ready(ctx, nil) }

// ready implements Ready. With a feed, events about which the feed was not told yet may be missing.
func (f *Follower) ready(ctx context.Context, known *feed) ([]Entry, error) {
	f.release()
	if f.ended || f.x.known.Mode == Off {
		return nil, io.EOF
	}
	if known != nil && known.endsAt(f.after) {
		return nil, nil
	}
	b, err := f.shelf.take(ctx, known, place{f.x.stored.ID, f.after})
	switch {
	case errors.Is(err, continuation.ErrNotFound):
		return nil, io.EOF // The execution was forgotten meanwhile.
	case err != nil:
		return nil, err
	case len(b.entries) == 0:
		return nil, nil
	}
	list := b.behind(f.after)
	last := list[len(list)-1]
	f.held, f.after, f.ended, f.checked = b, last.Seq, last.Type == TypeEnded, true
	return list, nil
}

// Next returns the next events, up to some 16 KiB of them. They are valid until the next call. It
// waits for them until ctx ends, or for as long as patience, after which the error is ErrQuiet.
// After the last event of the execution the error is io.EOF.
func (f *Follower) Next(ctx context.Context, patience time.Duration) ([]Entry, error) {
	var quiet <-chan time.Time
	for {
		grown := f.feed.grows()
		list, err := f.ready(ctx, f.feed)
		if err != nil || len(list) > 0 {
			return list, err
		}
		if !f.checked {
			if over, err := f.over(ctx); over || err != nil {
				return nil, err
			}
			f.checked = true
			continue // The execution may have ended meanwhile.
		}
		if quiet == nil {
			quiet = f.timer(patience)
		}
		select {
		case <-grown:
			if f.feed.closed() {
				return nil, io.EOF
			}
			f.checked = false
		case <-quiet:
			f.checked = false
			return nil, ErrQuiet
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (f *Follower) timer(d time.Duration) <-chan time.Time {
	if f.quiet == nil {
		f.quiet = time.NewTimer(d)
	} else {
		f.quiet.Reset(d)
	}
	return f.quiet.C
}

// over returns io.EOF if the execution has ended and there is nothing more to read. If the record of the
// execution has expired, over ends the execution.
func (f *Follower) over(ctx context.Context) (bool, error) {
	s, err := f.x.history.current(ctx, f.x.stored, f.x.known)
	if err != nil || !Terminal(s.Status) {
		return false, err
	}
	b, err := f.shelf.take(ctx, nil, place{f.x.stored.ID, f.after})
	if errors.Is(err, continuation.ErrNotFound) {
		return true, io.EOF
	}
	if err != nil {
		return false, err
	}
	defer f.shelf.release(b)
	if len(b.entries) == 0 {
		return true, io.EOF
	}
	return false, nil
}

// A feed tells the followers of one execution when there may be new events, and shares among them what they
// have read.
type feed struct {
	id string
	// shelf.mu guards these three. recent are the batches that were read last, which have size bytes.
	holders int
	recent  []*batch
	size    int
	// watched is closed when the watch has begun, or has failed with err.
	watched chan struct{}
	err     error
	stop    context.CancelFunc

	mu sync.Mutex
	// growths counts how often there may have been new events. grown is closed when growths increases.
	growths int64
	grown   chan struct{}
	over    bool
	// end says that there were no events after the one with number after, when growths had this value.
	end struct{ after, growths int64 }

	calls callIndex
}

// watch begins to count growths. It counts until ctx ends.
func (f *feed) watch(ctx context.Context, store Store) error {
	watch, err := store.Watch(ctx, f.id)
	if err != nil {
		return err
	}
	go func() {
		for range watch {
			f.grow(false)
		}
		f.grow(true)
	}()
	return nil
}

func (f *feed) grow(over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.growths++
	f.over = over
	close(f.grown)
	f.grown = make(chan struct{})
}

// grows returns a channel that is closed when there may be new events.
func (f *feed) grows() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.grown
}

func (f *feed) closed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over
}

// heard returns how often there may have been new events.
func (f *feed) heard() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.growths
}

// endsAt reports whether it is known that there are no events after a number. Events about which the feed
// was not told yet are not considered.
func (f *feed) endsAt(after int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end.growths >= f.growths && after >= f.end.after
}

// endAt notes that there were no events after a number when growths had this value.
func (f *feed) endAt(after, growths int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.end.growths < growths || f.end.growths == growths && after < f.end.after {
		f.end.after, f.end.growths = after, growths
	}
}

// A shelf has the parts of journals that followers read now, so that a thousand followers at the same place
// need the memory, the reads and the watch of only one.
type shelf struct {
	store Store

	mu      sync.Mutex
	batches map[place]*batch
	feeds   map[string]*feed
}

func newShelf(store Store) *shelf {
	return &shelf{store: store, batches: map[place]*batch{}, feeds: map[string]*feed{}}
}

// follow returns the feed of an execution. If the execution has ended, the feed watches nothing. The caller
// must leave the feed.
func (s *shelf) follow(ctx context.Context, id string, lives bool) (*feed, error) {
	s.mu.Lock()
	f := s.feeds[id]
	if f != nil {
		f.holders++
		s.mu.Unlock()
		<-f.watched
	} else {
		// Others share the watch, so it does not end with the caller.
		watching, stop := context.WithCancel(context.WithoutCancel(ctx))
		f = &feed{id: id, holders: 1, watched: make(chan struct{}), stop: stop, growths: 1, grown: make(chan struct{})}
		s.feeds[id] = f
		s.mu.Unlock()
		if lives {
			f.err = f.watch(watching, s.store)
		}
		close(f.watched)
	}
	if f.err != nil {
		s.leave(f)
		return nil, f.err
	}
	return f, nil
}

func (s *shelf) leave(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.holders--; f.holders == 0 {
		delete(s.feeds, f.id)
		f.stop()
		s.trim(f, 0)
	}
}

// keep keeps a batch that was just read for the other followers of its execution.
func (s *shelf) keep(f *feed, b *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.holders > 0 {
		b.holders++
		f.recent = append(f.recent, b)
		f.size += b.size()
		s.trim(f, recentBytes)
	}
}

// recentAt returns the recent batch that has the event after a number, if there is one. The caller holds
// shelf.mu.
func (f *feed) recentAt(after int64) (b *batch, found bool) {
	for _, b := range slices.Backward(f.recent) {
		if b.at.after <= after {
			return b, len(b.behind(after)) > 0
		}
	}
	return nil, false
}

// trim drops the oldest recent batches until no more than most bytes are left. The caller holds mu.
func (s *shelf) trim(f *feed, most int) {
	n := 0
	for ; n < len(f.recent) && f.size > most; n++ {
		f.size -= f.recent[n].size()
		s.drop(f.recent[n])
	}
	f.recent = slices.Delete(f.recent, 0, n)
}

// A place is a place in a journal: the one after the event with number after.
type place struct {
	id    string
	after int64
}

// A batch is what was read at a place.
type batch struct {
	at      place
	holders int // shelf.mu guards it
	// growths is feed.growths when the read began.
	growths int64
	// read is closed when entries and err are set.
	read    chan struct{}
	entries []Entry
	err     error
}

// take returns the stored events after a place, of which there may be none. With a feed, events about which
// the feed was not told yet may be missing, and the batch may begin before the place. The caller must
// release the batch.
func (s *shelf) take(ctx context.Context, known *feed, at place) (*batch, error) {
	var heard int64
	if known != nil {
		heard = known.heard()
	}
	for {
		s.mu.Lock()
		b, shared := s.batches[at]
		if !shared && known != nil {
			b, shared = known.recentAt(at.after)
		}
		if !shared {
			b = &batch{at: at, read: make(chan struct{}), growths: heard}
			s.batches[at] = b
		}
		b.holders++
		s.mu.Unlock()
		if !shared {
			s.read(ctx, b)
			switch {
			case known == nil || b.err != nil:
			case len(b.entries) == 0:
				known.endAt(at.after, b.growths)
			default:
				s.keep(known, b)
			}
		}
		select {
		case <-b.read:
		case <-ctx.Done():
			s.release(b)
			return nil, ctx.Err()
		}
		switch {
		case b.err != nil:
			s.release(b)
			return nil, b.err
		case len(b.entries) > 0, !shared, known != nil && b.growths >= heard:
			return b, nil
		}
		// The read may have begun before the latest growth, of which this caller knows. Read again.
		s.release(b)
	}
}

// read reads the stored events after the place of a batch. A batch that is empty or has an error is not
// offered to followers that come later.
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
	s.drop(b)
}

// drop implements release. The caller holds mu.
func (s *shelf) drop(b *batch) {
	if b.holders--; b.holders == 0 && s.batches[b.at] == b {
		delete(s.batches, b.at)
	}
}

// behind returns the events of a batch after the one with number after.
func (b *batch) behind(after int64) []Entry {
	// The numbers of events have no gaps.
	return b.entries[min(int64(len(b.entries)), after-b.at.after):]
}

// size returns how many bytes the events of a batch have.
func (b *batch) size() int {
	size := 0
	for _, e := range b.entries {
		size += len(e.Content)
	}
	return size
}
