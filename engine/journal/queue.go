package journal

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"fermata/continuation"
)

// mostKept bounds the stored events that a queue keeps, in bytes.
const mostKept = 256 << 10

// A note is an event without its number, which it gets when it is written: the JSON that follows
// the number. at is queue.noted with this event.
type note struct {
	rest []byte
	at   int64
	// output is the event, if it is output that no Chapter has had yet. More may be joined to it.
	output *Output
}

// size returns about how many bytes the event takes.
func (n *note) size() int64 { return int64(len(unnumbered) + len(n.rest)) }

// unnumbered is how the JSON of an event without a number begins.
const unnumbered = `{"seq":0`

// numbered returns the JSON of an event.
func (n *note) numbered(seq int64) json.RawMessage {
	line := make([]byte, 0, len(n.rest)+len(unnumbered)+20)
	line = strconv.AppendInt(append(line, `{"seq":`...), seq, 10)
	return append(line, n.rest...)
}

// A queue has the events that wait to be stored, and numbers them. It also keeps the latest ones
// that are stored, in case the store loses them again.
type queue struct {
	// waiting are the events that are not stored yet; first is the number of the first of them.
	first   int64
	waiting []*note
	// kept are the stored events right before first, of keptSize bytes.
	kept     []*note
	keptSize int
	// noted counts the events that were noted, also those that were removed.
	noted int64
}

// add adds an event.
func (q *queue) add(n *note) {
	q.noted++
	n.at = q.noted
	q.waiting = append(q.waiting, n)
}

// last returns the event that was added last, if it waits.
func (q *queue) last() *note {
	if len(q.waiting) == 0 {
		return nil
	}
	return q.waiting[len(q.waiting)-1]
}

// remove removes events, as far as they wait.
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

// stored tells that the store has the events up to number last, by a write that was made when so
// many had been noted. If it had more before, it has lost them, and they wait again.
func (q *queue) stored(last, noted int64) {
	if last < q.first-1 {
		q.rewind(last, noted)
		return
	}
	// Events that wait, and were noted by then, came with that write. A count would not do: it may
	// also have brought events that were removed since.
	came := notedBy(q.waiting, noted)
	q.keep(q.waiting[:came], last)
	q.waiting, q.first = slices.Delete(q.waiting, 0, came), last+1
}

// notedBy returns how many of the first notes were noted when so many had been noted in all.
func notedBy(notes []*note, noted int64) int {
	n, _ := slices.BinarySearchFunc(notes, noted+1, func(n *note, at int64) int { return cmp.Compare(n.at, at) })
	return n
}

// keep keeps events that are stored now, up to number last.
func (q *queue) keep(notes []*note, last int64) {
	if int64(len(notes)) != last+1-q.first {
		q.kept, q.keptSize = nil, 0 // It is not known which number each of them has.
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

// rewind has the events wait again that followed event number last, when so many had been noted in
// all. Each gets the number again that it had. If one of them is not kept, none of them waits: what
// is lost is lost.
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
