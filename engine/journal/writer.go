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
	// Value is the maximum size, in bytes of compact JSON, of an input or an output that is kept whole.
	Value int
	// Life is how long a journal is kept after the end of its execution.
	Life time.Duration
	// Mark is that of the Summary of new executions.
	Mark string
}

const (
	// maxCode is the maximum size, in bytes of compact JSON, of code that is kept whole.
	maxCode = 256 << 10
	// maxJournal is the size in bytes from which a journal keeps no values, except those that are no larger
	// than the mark of a missing value. It keeps only maxLate bytes of a text then.
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

// A Writer makes the events of one execution that runs on this server, and gives them their times and
// numbers. The events wait in the Writer until a write of the record has stored them. It is safe for
// concurrent use.
type Writer struct {
	o Options

	mu      sync.Mutex
	summary Summary
	queue   queue
	last    time.Time
	// size is the size of all events in bytes, whether they are stored or not.
	size    int64
	streams map[Stream]*printed
	// lines is the number of lines of the program.
	lines int
	// unsaved is true if the summary has changed since it was stored.
	unsaved bool
	ended   bool
}

// printed says how much of a stream is in events. raw counts the bytes that the program has printed, and
// text the bytes of UTF-8 in the events.
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

// NewWriter returns the Writer of a new execution. lines is the number of lines of its program.
func NewWriter(o Options, s Summary, lines int) *Writer {
	s.Mode, s.Mark = cmp.Or(o.Mode, Full), o.Mark
	return newWriter(o, s, 0, state{Lines: lines})
}

// Continue returns the Writer of an execution that another server has begun. s is its summary in the store.
func Continue(o Options, r continuation.Record, s Summary) (*Writer, error) {
	var st state
	if len(r.Printed) > 0 {
		if err := json.Unmarshal(r.Printed, &st); err != nil {
			return nil, fmt.Errorf("journal: read what execution %s has printed: %w", r.ID, err)
		}
	}
	s.Mode = cmp.Or(Mode(r.Journal), Off) // It is empty if a server that kept no journals has written the record.
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
	addEvents(w, events...)
	return slices.Clone(w.queue.waiting[before:])
}

// Retract removes events about something that has not happened after all, if they still wait.
func (w *Writer) Retract(notes Notes) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue.remove(notes)
}

// addEvents adds events, all of which happen now. The caller holds mu.
func addEvents(w *Writer, events ...Event) {
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
		// It does not happen: only a value that is not JSON can cause it, and values are checked before.
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

// typeOfDecision returns the type of the event about a decision.
func typeOfDecision(d *ApprovalDecided) string {
	if d.Given {
		return TypeApprovalGiven
	}
	return TypeApprovalRefused
}

// Print adds output of the program: the bytes of a stream from an offset on. It ignores bytes that were
// added before, and reports whether it has added or extended an event.
func (w *Writer) Print(s Stream, offset int64, data []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.streams[s]
	seen := p.raw + int64(p.decoder.Held()) - offset
	if seen < 0 || seen >= int64(len(data)) {
		return false
	}
	before := p.text
	addOutput(w, s, p.decoder.Write(data[seen:]))
	p.raw = offset + int64(len(data)) - int64(p.decoder.Held())
	return w.summary.Mode == Full && p.text > before
}

// Finish adds what is still missing of a stream, and then the text added, which comes from the server. data
// is the whole stream.
func (w *Writer) Finish(s Stream, data []byte, added string) {
	w.Print(s, 0, data)
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.streams[s]
	p.raw += int64(p.decoder.Held())
	addOutput(w, s, p.decoder.Close())
	addOutput(w, s, added)
}

const (
	// maxOutput is the maximum size of the text of one output event, in bytes.
	maxOutput = 256 << 10
	// maxJoined is the maximum size, in bytes, of the text of an output event to which more output is joined
	// while it waits to be stored.
	maxJoined = 16 << 10
)

func addOutput(w *Writer, s Stream, text string) {
	p := w.streams[s]
	for text != "" {
		n := min(len(text), maxOutput)
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		if w.summary.Mode == Full && !joinOutput(w, s, text[:n]) {
			addEvents(w, &Output{Stream: string(s), Offset: p.text, Text: text[:n]})
		}
		p.text += int64(n)
		text = text[n:]
	}
}

// joinOutput adds text to the event that was added last, if that is output of the same stream. So a program that
// prints little by little does not make more events than the store can take.
func joinOutput(w *Writer, s Stream, text string) bool {
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

// Value returns a value in the form that events have: whole, or truncated if it is large. It returns nil if
// the journal keeps no values.
func (w *Writer) Value(v json.RawMessage) json.RawMessage { return valueOf(w, v, w.o.Value) }

// Code returns the code of a program, which is a JSON string, in the form that the first event has.
func (w *Writer) Code(v json.RawMessage) json.RawMessage { return valueOf(w, v, maxCode) }

func valueOf(w *Writer, v json.RawMessage, most int) json.RawMessage {
	if w.summary.Mode != Full {
		return nil
	}
	if len(v) == 0 {
		return json.RawMessage("null")
	}
	size, full := compactSize(v), isFull(w)
	if size <= most && !full {
		return v
	}
	head := ""
	if !full {
		head = headOf(v)
	}
	cut, err := json.Marshal(truncated{true, size, head})
	if err != nil {
		panic(err) // It does not happen: a struct of three plain members can be encoded.
	}
	if size <= min(most, len(cut)) {
		return v
	}
	return cut
}

// isFull reports whether the journal is so large that it keeps no more values.
func isFull(w *Writer) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.size > maxJournal
}

// Text returns the beginning of a text, as events keep it, or "" if the journal keeps no values.
func (w *Writer) Text(s string) string {
	if w.summary.Mode != Full {
		return ""
	}
	most := maxHead
	if isFull(w) {
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
		e.Error, e.Raised = "", "" // It may contain text of the program.
	}
	addEvents(w, e)
	at := Moment(w.last) // The time of e.
	w.summary.Status, w.summary.Ended = e.Status, &at
	w.summary.Rounds, w.summary.Calls, w.summary.Ran, w.summary.Error = e.Rounds, e.Calls, e.Ran, e.Error
	w.summary.Reason, w.summary.Detail = e.Reason, e.Detail
	w.ended, w.unsaved = true, true
}

// Chapter returns what the next write of the record must store, and notes in the record how much that is.
// The events in the Chapter wait until Stored is called.
func (w *Writer) Chapter(r *continuation.Record) (continuation.Chapter, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := continuation.Chapter{First: w.queue.first, Events: make([]json.RawMessage, len(w.queue.waiting))}
	for i, e := range w.queue.events() {
		c.Events[i] = e.Content
		w.queue.waiting[i].output = nil // The event must not change from now on, since the store may have it.
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

// Stored notes that the store has r, a record that was passed to Chapter, and the events of that Chapter.
// saved is true if the store has the latest summary as well. If r is older than a record that was stored
// before, the store has lost the events since r, and they wait again.
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

// Lost notes that the store has lost the whole journal.
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
