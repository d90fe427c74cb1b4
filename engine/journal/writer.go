package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"fermata/continuation"
)

// Options say how journals are kept.
type Options struct {
	// Mode is how much the journals of new executions keep.
	Mode Mode
	// Value bounds the compact JSON of an input or an output that is kept whole, in bytes.
	Value int
	// Life is how long a journal is kept after the end of its execution.
	Life time.Duration
}

const (
	// maxCode bounds the code that a journal keeps whole, in bytes of compact JSON.
	maxCode = 256 << 10
	// maxJournal is the size from which a journal keeps nothing of values, except of those that are
	// no larger than what says that a value is missing. Of texts it keeps maxLate bytes.
	maxJournal = 16 << 20
	maxLate    = 256
)

// A Stream is one of the two streams to which programs print.
type Stream string

// The streams.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// A Writer makes the events of one execution that lives on this server: it gives them their times,
// and their numbers. They wait in it until a write of the record has stored them. It is safe for
// concurrent use.
type Writer struct {
	o Options

	mu      sync.Mutex
	summary Summary
	queue   queue
	last    time.Time
	// size is how many bytes of events there are, stored or not.
	size    int64
	streams map[Stream]*printed
	// lines is how many lines the program has.
	lines int
	// unsaved is true if the summary has changed since it was stored.
	unsaved bool
	ended   bool
}

// printed is how much of a stream has become events. raw counts the bytes that the program has
// printed, text those of the UTF-8 of the events.
type printed struct {
	decoder   Decoder
	raw, text int64
}

// A state is what the record keeps for the Writer of the next server.
type state struct {
	Stdout [2]int64 `json:"stdout"`
	Stderr [2]int64 `json:"stderr"`
	Size   int64    `json:"size"`
	Last   int64    `json:"last"`
	Noted  int64    `json:"noted"`
	Lines  int      `json:"lines"`
}

// NewWriter returns the Writer of a new execution, whose program has so many lines.
func NewWriter(o Options, s Summary, lines int) *Writer {
	s.Mode = cmp.Or(o.Mode, Full)
	return newWriter(o, s, 0, state{Lines: lines})
}

// Continue returns the Writer of an execution that another server has begun. s is what the store
// has as its summary.
func Continue(o Options, r continuation.Record, s Summary) (*Writer, error) {
	var st state
	if len(r.Printed) > 0 {
		if err := json.Unmarshal(r.Printed, &st); err != nil {
			return nil, fmt.Errorf("journal: read what execution %s has printed: %w", r.ID, err)
		}
	}
	s.Mode = cmp.Or(Mode(r.Journal), Off) // Servers that kept no journals leave it empty.
	return newWriter(o, s, r.Events, st), nil
}

func newWriter(o Options, s Summary, events int64, st state) *Writer {
	w := &Writer{
		o: o, summary: s, queue: queue{first: events + 1, noted: st.Noted}, size: st.Size, lines: st.Lines,
		unsaved: st.Last == 0 && events == 0,
		streams: map[Stream]*printed{
			Stdout: {raw: st.Stdout[0], text: st.Stdout[1]},
			Stderr: {raw: st.Stderr[0], text: st.Stderr[1]},
		},
	}
	if st.Last > 0 {
		w.last = time.UnixMilli(st.Last)
	}
	return w
}

// An Event is an event that a Writer can take: a pointer to one of the structs of this package.
type Event interface{ head() *Head }

func (h *Head) head() *Head { return h }

// Notes are events that wait in a Writer.
type Notes []*note

// Note adds events.
func (w *Writer) Note(events ...Event) Notes {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.queue.waiting)
	w.note(events...)
	return slices.Clone(w.queue.waiting[before:])
}

// Retract takes events back that have not come to pass, as far as they wait.
func (w *Writer) Retract(notes Notes) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue.remove(notes)
}

// note adds events, all of which happen now. mu is held.
func (w *Writer) note(events ...Event) {
	if now := time.Now().Truncate(time.Millisecond); now.After(w.last) {
		w.last = now
	}
	if w.summary.Mode == Off || w.ended {
		return
	}
	for _, e := range events {
		h := e.head()
		h.Time, h.Type = Moment(w.last), typeOf(e)
		n := &note{rest: encode(e)}
		n.output, _ = e.(*Output)
		w.size += n.size()
		w.queue.add(n)
	}
}

// encode returns the JSON of an event that follows its number.
func encode(e Event) []byte {
	line, err := json.Marshal(e)
	if err != nil {
		// Only a value that is no JSON can cause this, and values are checked when they come.
		panic(fmt.Errorf("journal: encode %s: %w", e.head().Type, err))
	}
	if !utf8.Valid(line) {
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	}
	return line[len(unnumbered):]
}

// typeOf returns the type of an event.
func typeOf(e Event) string {
	switch e := e.(type) {
	case *Started:
		return TypeStarted
	case *Output:
		return TypeOutput
	case *CallStarted:
		return TypeCallStarted
	case *CallCompleted:
		return TypeCallCompleted
	case *CallFailed:
		return TypeCallFailed
	case *ApprovalRequested:
		return TypeApprovalRequested
	case *ApprovalDecided:
		return typeOfDecision(e)
	case *Paused:
		return TypePaused
	case *Resumed:
		return TypeResumed
	case *FileStored:
		return TypeFileStored
	case *OutputJudged:
		return TypeOutputJudged
	case *ArtifactStored:
		return TypeArtifactStored
	default:
		return TypeEnded
	}
}

// typeOfDecision returns the type of an event that tells of a decision.
func typeOfDecision(d *ApprovalDecided) string {
	if d.Given {
		return TypeApprovalGiven
	}
	return TypeApprovalRefused
}

// Print adds what the program has printed: the bytes of a stream from an offset on. Those that were
// added before are left out. It reports whether events have come of it.
func (w *Writer) Print(s Stream, offset int64, data []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.streams[s]
	seen := p.raw + int64(p.decoder.Held()) - offset
	if seen < 0 || seen >= int64(len(data)) {
		return false
	}
	before := p.text
	w.print(s, p.decoder.Write(data[seen:]))
	p.raw = offset + int64(len(data)) - int64(p.decoder.Held())
	return w.summary.Mode == Full && p.text > before
}

// Finish adds what is still missing of a stream, all of whose bytes are data, and then added,
// which the server says there.
func (w *Writer) Finish(s Stream, data []byte, added string) {
	w.Print(s, 0, data)
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.streams[s]
	p.raw += int64(p.decoder.Held())
	w.print(s, p.decoder.Close())
	w.print(s, added)
}

const (
	// maxOutput bounds the text of one output event, in bytes.
	maxOutput = 256 << 10
	// maxJoined bounds the text of an output event to which more is joined while it waits for the
	// store, in bytes.
	maxJoined = 16 << 10
)

func (w *Writer) print(s Stream, text string) {
	p := w.streams[s]
	for text != "" {
		n := min(len(text), maxOutput)
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		if w.summary.Mode == Full && !w.join(s, text[:n]) {
			w.note(&Output{Stream: string(s), Offset: p.text, Text: text[:n]})
		}
		p.text += int64(n)
		text = text[n:]
	}
}

// join adds text to the event that was noted last, if that is output of the same stream: a program
// that prints little by little makes no more events than the store has time for.
func (w *Writer) join(s Stream, text string) bool {
	last := w.queue.last()
	if w.ended || last == nil || last.output == nil || last.output.Stream != string(s) || len(last.output.Text)+len(text) > maxJoined {
		return false
	}
	w.size -= last.size()
	last.output.Text += text
	last.rest = encode(last.output)
	w.size += last.size()
	return true
}

// Value returns a value as events keep it: whole, or cut if it is large; nil if the journal keeps
// no values.
func (w *Writer) Value(v json.RawMessage) json.RawMessage { return w.value(v, w.o.Value) }

// Code returns the code of a program, a JSON string, as the first event keeps it.
func (w *Writer) Code(v json.RawMessage) json.RawMessage { return w.value(v, maxCode) }

func (w *Writer) value(v json.RawMessage, most int) json.RawMessage {
	if w.summary.Mode != Full {
		return nil
	}
	if len(v) == 0 {
		return json.RawMessage("null")
	}
	size, full := compactSize(v), w.full()
	if size <= most && !full {
		return v
	}
	head := ""
	if !full {
		head = headOf(v)
	}
	cut, err := json.Marshal(truncated{true, size, head})
	if err != nil {
		panic(err) // A struct of three plain members can be encoded.
	}
	if size <= min(most, len(cut)) {
		return v
	}
	return cut
}

// full reports whether the journal is so large that it keeps nothing of values any more.
func (w *Writer) full() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.size > maxJournal
}

// Text returns a text as events keep it: its beginning, or nothing if the journal keeps no values.
func (w *Writer) Text(s string) string {
	if w.summary.Mode != Full {
		return ""
	}
	most := maxHead
	if w.full() {
		most = maxLate
	}
	if len(s) <= most {
		return s
	}
	return whole([]byte(s[:most]))
}

// Line returns the line that a program claims for a call, or 0 if the program has no such line.
func (w *Writer) Line(n int) int {
	if n < 1 || n > w.lines {
		return 0
	}
	return n
}

// Summary returns the summary.
func (w *Writer) Summary() Summary {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.summary
}

// End adds the last event and completes the summary. Nothing is added after it.
func (w *Writer) End(e *Ended) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.StdoutBytes, e.StderrBytes = w.streams[Stdout].text, w.streams[Stderr].text
	if w.summary.Mode != Full {
		e.Error = "" // It may be what the program has said.
	}
	w.note(e)
	at := Moment(w.last) // the time of e
	w.summary.Status, w.summary.Ended = e.Status, &at
	w.summary.Rounds, w.summary.Calls, w.summary.Ran, w.summary.Error = e.Rounds, e.Calls, e.Ran, e.Error
	w.summary.Reason, w.summary.Detail = e.Reason, e.Detail
	w.ended, w.unsaved = true, true
}

// Chapter returns what the next write of the record brings to the store, and notes in the record
// how much that is. What it has stays waiting until Stored is called.
func (w *Writer) Chapter(r *continuation.Record) (continuation.Chapter, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := continuation.Chapter{First: w.queue.first, Events: make([]json.RawMessage, len(w.queue.waiting))}
	for i, e := range w.queue.events() {
		c.Events[i] = e.Content
		w.queue.waiting[i].output = nil // The store may have it from now on.
	}
	if w.unsaved {
		content, err := json.Marshal(w.summary)
		if err != nil {
			return c, fmt.Errorf("journal: encode summary: %w", err)
		}
		c.Summary = &continuation.Summary{
			ID: w.summary.ID, Principal: w.summary.Principal, Created: time.Time(w.summary.Created), Ended: w.ended, Content: content,
		}
	}
	if w.ended {
		c.Life = w.o.Life
	}
	out, err := w.streams[Stdout], w.streams[Stderr]
	r.Journal, r.Events = string(w.summary.Mode), w.queue.end()
	if w.summary.Mode == Off {
		return c, nil
	}
	st := state{
		Stdout: [2]int64{out.raw, out.text}, Stderr: [2]int64{err.raw, err.text},
		Size: w.size, Last: w.last.UnixMilli(), Noted: w.queue.noted, Lines: w.lines,
	}
	text, encErr := json.Marshal(st)
	r.Printed = text
	return c, encErr
}

// Stored tells that the store has r, a record that Chapter has made ready, and the events that came
// with it. saved tells that it has the latest summary. If r is older than one that was stored
// before, the store has lost the events since, and they wait again.
func (w *Writer) Stored(r continuation.Record, saved bool) error {
	var st state
	if len(r.Printed) > 0 {
		if err := json.Unmarshal(r.Printed, &st); err != nil {
			return fmt.Errorf("journal: read the state of execution %s: %w", r.ID, err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if saved {
		w.unsaved = false
	}
	w.queue.stored(r.Events, st.Noted)
	return nil
}

// Waiting returns the events that are not stored yet.
func (w *Writer) Waiting() []continuation.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queue.events()
}

// Lost tells that the store has lost the whole journal.
func (w *Writer) Lost() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unsaved = true
	w.queue.rewind(0, 0)
}

// Waits reports whether anything waits to be stored.
func (w *Writer) Waits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue.waiting) > 0 || w.unsaved
}
