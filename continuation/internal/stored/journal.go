package stored

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"fermata/continuation"
)

// AppendChapter appends the stored form of the events of a chapter to b. It is
//
//	4 bytes  number of events, big-endian
//	         the events, with line feeds between them
//
// and may not change.
func AppendChapter(b []byte, events []json.RawMessage) ([]byte, error) {
	b = binary.BigEndian.AppendUint32(b, uint32(len(events)))
	for i, e := range events {
		if len(e) == 0 || bytes.IndexByte(e, '\n') >= 0 {
			return nil, fmt.Errorf("encode chapter: event %d of it is empty or has a line break", i+1)
		}
		if i > 0 {
			b = append(b, '\n')
		}
		b = append(b, e...)
	}
	return b, nil
}

// ChapterLen returns the length of the stored form of the events of a chapter.
func ChapterLen(events []json.RawMessage) int {
	n := 4
	for _, e := range events {
		n += len(e) + 1
	}
	return n
}

// Count returns how many events a chapter in stored form has.
func Count(form []byte) (int64, error) {
	if len(form) < 4 {
		return 0, errors.New("decode chapter: too short")
	}
	return int64(binary.BigEndian.Uint32(form)), nil
}

// A Page collects the events after the one with number After: those that together have at most
// Size bytes, or the first one if that is larger.
type Page struct {
	After  int64
	Size   int
	Events []continuation.Event
	bytes  int
}

// Add copies events from a chapter in stored form, as far as the page has room for them. The first event of the
// chapter has the number first. Add reports whether there is room for more.
func (p *Page) Add(first int64, form []byte) (more bool, err error) {
	count, err := Count(form)
	if err != nil {
		return false, err
	}
	for seq, rest := first, form[4:]; count > 0; seq, count = seq+1, count-1 {
		event, after, found := bytes.Cut(rest, []byte{'\n'})
		if found != (count > 1) || len(event) == 0 {
			return false, fmt.Errorf("decode chapter: it ends at event %d, want %d more", seq, count-1)
		}
		rest = after
		if seq <= p.After {
			continue
		}
		if len(p.Events) > 0 && len(event) > p.Size-p.bytes {
			return false, nil
		}
		p.bytes += len(event)
		p.Events = append(p.Events, continuation.Event{Seq: seq, Content: bytes.Clone(event)})
	}
	return len(p.Events) == 0 || p.bytes < p.Size, nil
}

// summaryHead is a summary without its content.
type summaryHead struct {
	ID        string `json:"id"`
	Principal string `json:"principal"`
	Created   int64  `json:"created_ms"`
	Ended     bool   `json:"ended,omitempty"`
}

// AppendSummary appends the stored form of s to b. It is
//
//	4 bytes  length of the JSON, big-endian
//	         JSON of the summary without its content
//	         the content
//
// and may not change.
func AppendSummary(b []byte, s continuation.Summary) ([]byte, error) {
	head, err := json.Marshal(summaryHead{ID: s.ID, Principal: s.Principal, Created: CreatedMillis(s.Created), Ended: s.Ended})
	if err != nil {
		return nil, fmt.Errorf("encode summary: %w", err)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(head)))
	b = append(b, head...)
	return append(b, s.Content...), nil
}

// DecodeSummary returns the summary whose stored form is b. It shares no memory with b.
func DecodeSummary(b []byte) (continuation.Summary, error) {
	if len(b) < 4 {
		return continuation.Summary{}, errors.New("decode summary: too short")
	}
	n, b := binary.BigEndian.Uint32(b), b[4:]
	if uint64(n) > uint64(len(b)) {
		return continuation.Summary{}, errors.New("decode summary: cut off")
	}
	var head summaryHead
	if err := json.Unmarshal(b[:n], &head); err != nil {
		return continuation.Summary{}, fmt.Errorf("decode summary: %w", err)
	}
	return continuation.Summary{
		ID: head.ID, Principal: head.Principal, Created: time.UnixMilli(head.Created).UTC(), Ended: head.Ended,
		Content: bytes.Clone(b[n:]),
	}, nil
}

// CreatedMillis returns t in milliseconds in the form by which lists of summaries are sorted: not negative, and
// with at most 48 bits.
func CreatedMillis(t time.Time) int64 {
	const most = 1<<48 - 1
	return min(max(0, t.UnixMilli()), most)
}

// Counts returns for how many bytes a journal of this size counts against the limits.
func Counts(size int64) int64 { return max(size, continuation.JournalLeast) }

// LifeEnd returns when something expires that lives for life from now on, in milliseconds of the wall clock,
// which goes on when the machine restarts.
func LifeEnd(now time.Time, life time.Duration) int64 {
	at := now.UnixMilli()
	if ms := Millis(life); ms < math.MaxInt64-at {
		return at + ms
	}
	return math.MaxInt64
}
