package journal

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"fermata/continuation"
)

// mostKept is how many bytes of stored events a queue keeps at most.
const mostKept = 256 << 10

// A note is an event that has no number yet. It gets its number when it is written. rest is its JSON after
// the number. at is the value of queue.noted when the event was added, including the event.
type note struct {
	rest []byte
	at   int64
	// output is the event, if it is output that is in no Chapter yet. More output may be joined to it.
	output *Output
}

// size returns the approximate size of the event in bytes.
func (n *note) size() int64 { return int64(len(unnumbered) + len(n.rest)) }

// unnumbered is the beginning of the JSON of an event without a number.
const unnumbered = `{"seq":0`

// numbered returns the JSON of an event.
func (n *note) numbered(seq int64) json.RawMessage {
	line := make([]byte, 0, len(n.rest)+len(unnumbered)+20)
	line = strconv.AppendInt(append(line, `{"seq":`...), seq, 10)
	return append(line, n.rest...)
}

// A queue has the events that wait to be stored, and numbers them. It also keeps the latest stored events,
// in case the store loses them.
type queue struct {
	// waiting are the events that are not stored yet. first is the number of the first of them.
	first   int64
	waiting []*note
	// kept are the stored events right before first. They have keptSize bytes.
	kept     []*note
	keptSize int
	// noted counts the events that were added, including those that were removed.
	noted int64
}

// add adds an event.
func (q *queue) add(n *note) {
	q.noted++
	n.at = q.noted
	q.waiting = append(q.waiting, n)
}

// last returns the event that was added last, or nil if it does not wait any more.
func (q *queue) last() *note {
	if len(q.waiting) == 0 {
		return nil
	}
	return q.waiting[len(q.waiting)-1]
}

// remove removes those of the events that still wait.
func (q *queue) remove(notes []*note) {
	q.waiting = slices.DeleteFunc(q.waiting, func(n *note) bool { return slices.Contains(notes, n) })
}

// end returns the number of the last event.
func (q *queue) end() int64 { return q.first - 1 + int64(len(q.waiting)) }

// events returns the events that wait.
func (q *queue) events() []continuation.Event {
	events := make([]continuation.Event, len(q.waiting))
	for i, n := range q.waiting {
		seq := q.first + int64(i)
		events[i] = continuation.Event{Seq: seq, Content: n.numbered(seq)}
	}
	return events
}

// stored notes that the store has the events up to number last, from a write that was made when q.noted had
// the value noted. If the store had more events before, it has lost them, and they wait again.
func (q *queue) stored(last, noted int64) {
	if last < q.first-1 {
		q.rewind(last, noted)
		return
	}
	// The write has stored the waiting events that were added before it. Their number cannot be derived
	// from last, since the write may also have stored events that were removed since.
	came := notedBy(q.waiting, noted)
	q.keep(q.waiting[:came], last)
	q.waiting, q.first = slices.Delete(q.waiting, 0, came), last+1
}

// notedBy returns how many of the notes were added until queue.noted had the value noted.
func notedBy(notes []*note, noted int64) int {
	n, _ := slices.BinarySearchFunc(notes, noted+1, func(n *note, at int64) int { return cmp.Compare(n.at, at) })
	return n
}

// keep keeps events that were just stored, the last of which has number last.
func (q *queue) keep(notes []*note, last int64) {
	if int64(len(notes)) != last+1-q.first {
		q.kept, q.keptSize = nil, 0 // The number of each event is not known.
		return
	}
	q.kept = append(q.kept, notes...)
	for _, n := range notes {
		q.keptSize += len(n.rest)
	}
	gone := 0
	for ; q.keptSize > mostKept; gone++ {
		q.keptSize -= len(q.kept[gone].rest)
	}
	q.kept = slices.Delete(q.kept, 0, gone)
}

// rewind makes the stored events after number last wait again. noted is the value of q.noted when the write
// of event number last was made. Each event gets the same number as before. If not all of these events are
// kept, rewind does nothing, and the events are lost.
func (q *queue) rewind(last, noted int64) {
	from := notedBy(q.kept, noted)
	lost := q.kept[from:]
	if int64(len(lost)) != q.first-1-last {
		return
	}
	for _, n := range lost {
		q.keptSize -= len(n.rest)
	}
	q.waiting, q.first = slices.Concat(lost, q.waiting), last+1
	q.kept = slices.Clone(q.kept[:from])
}
