package journal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fermata/continuation"
)

// chapter returns the types of the events of the next write, and the record of that write.
func chapter(t *testing.T, w *Writer) (string, continuation.Record) {
	t.Helper()
	var r continuation.Record
	c, err := w.Chapter(&r)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i, line := range c.Events {
		var h Head
		if err := json.Unmarshal(line, &h); err != nil {
			t.Fatalf("event %s: %v", line, err)
		}
		if want := c.First + int64(i); h.Seq != want {
			t.Errorf("event %d has the number %d", want, h.Seq)
		}
		lines = append(lines, h.Type)
	}
	return strings.Join(lines, " "), r
}

// stored tells w that the store has a record.
func stored(t *testing.T, w *Writer, r continuation.Record) {
	t.Helper()
	if err := w.Stored(r, true); err != nil {
		t.Fatal(err)
	}
}

func TestWriterNumbers(t *testing.T) {
	w := NewWriter(Options{Mode: Full, Value: 10}, Summary{ID: "x"}, 3)
	w.Note(&Started{}, &Output{Stream: "stdout", Text: "a"})
	got, first := chapter(t, w)
	if got != "execution.started output" || first.Events != 2 {
		t.Errorf("first chapter: %s, %d events", got, first.Events)
	}
	// A write that has failed is made again, with the events since.
	claim := w.Note(&Resumed{Round: 1}, &CallCompleted{Call: "call_001"})
	w.Note(&Output{Stream: "stdout", Offset: 1, Text: "b"})
	if got, _ := chapter(t, w); got != "execution.started output execution.resumed call.completed output" {
		t.Errorf("second chapter: %s", got)
	}
	// The events of a claim that has failed are removed.
	w.Retract(claim)
	if got, _ := chapter(t, w); got != "execution.started output output" {
		t.Errorf("chapter after a failed claim: %s", got)
	}
	stored(t, w, first)
	got, r := chapter(t, w)
	if got != "output" || r.Events != 3 {
		t.Errorf("chapter after a write of two events: %s, %d events", got, r.Events)
	}
	stored(t, w, r)
	if w.Waits() {
		t.Error("events wait although all of them are stored")
	}
	w.End(&Ended{Status: StatusCompleted})
	w.Note(&Output{Text: "too late"})
	if got, _ := chapter(t, w); got != "execution.ended" {
		t.Errorf("last chapter: %s", got)
	}
}

// A write that was reported as failed has stored a claim that was retracted since.
func TestWriterOfAStoredClaim(t *testing.T) {
	w := NewWriter(Options{Mode: Full}, Summary{ID: "x"}, 1)
	w.Note(&Started{})
	claim := w.Note(&Resumed{}, &CallCompleted{})
	_, r := chapter(t, w)
	w.Retract(claim)
	w.Note(&Output{})
	stored(t, w, r)
	if got, r := chapter(t, w); got != "output" || r.Events != 4 {
		t.Errorf("chapter: %s, %d events, want one output, which is event 4", got, r.Events)
	}
}

// A store that has lost its latest writes, or all of them, gets their events again, with the same
// numbers and times.
func TestWriterOfAStoreThatForgets(t *testing.T) {
	w := NewWriter(Options{Mode: Full}, Summary{ID: "x"}, 1)
	written := map[int64]string{}
	write := func() continuation.Record {
		t.Helper()
		var r continuation.Record
		c, err := w.Chapter(&r)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range c.Events {
			seq := c.First + int64(i)
			if before, again := written[seq]; again && before != string(e) {
				t.Errorf("event %d was %s, and is %s", seq, before, e)
			}
			written[seq] = string(e)
		}
		return r
	}
	stored := func(r continuation.Record) {
		t.Helper()
		if err := w.Stored(r, true); err != nil {
			t.Fatal(err)
		}
	}
	w.Note(&Started{})
	stored(write())
	w.Note(&Output{Stream: "stdout", Text: "a"})
	old := write()
	stored(old)
	w.Note(&Output{Stream: "stdout", Text: "b"}, &Paused{Round: 1})
	stored(write())
	w.Note(&Resumed{Round: 1})
	stored(old)
	if r := write(); w.queue.first != 3 || r.Events != 5 {
		t.Errorf("after a loss of two events, %d to %d are written, want 3 to 5", w.queue.first, r.Events)
	}
	stored(write())
	w.Lost()
	if r := write(); w.queue.first != 1 || r.Events != 5 || !w.unsaved {
		t.Errorf("after a loss of all events, %d to %d are written, want 1 to 5", w.queue.first, r.Events)
	}
	stored(write())
	// Now more events are lost than are kept.
	for range 5 {
		w.Note(&Output{Stream: "stdout", Text: strings.Repeat("x", mostKept/2)})
		stored(write())
	}
	if w.queue.keptSize > mostKept || len(w.queue.kept) != 1 {
		t.Errorf("%d events of %d bytes are kept, want one", len(w.queue.kept), w.queue.keptSize)
	}
	stored(old)
	if w.queue.first != 11 || len(w.queue.waiting) > 0 {
		t.Errorf("after a loss of more than is kept, %d events wait, the first is number %d", len(w.queue.waiting), w.queue.first)
	}
	// The store has a claim that was retracted. The numbers of the events before it are not known.
	w.Note(&Output{Stream: "stdout", Text: "c"})
	claim := w.Note(&Resumed{Round: 2})
	r := write()
	w.Retract(claim)
	stored(r)
	if w.queue.first != 13 || len(w.queue.waiting) > 0 || len(w.queue.kept) > 0 {
		t.Errorf("after a retracted claim was stored, the next number is %d, %d events wait and %d are kept", w.queue.first, len(w.queue.waiting), len(w.queue.kept))
	}
}

func TestWriterOutput(t *testing.T) {
	text := "a€b" + "\xff" + "c€"
	var all strings.Builder
	read := func(w *Writer) continuation.Record {
		var r continuation.Record
		c, err := w.Chapter(&r)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range c.Events {
			var o Output
			if err := json.Unmarshal(line, &o); err != nil {
				t.Fatal(err)
			}
			if o.Offset != int64(all.Len()) {
				t.Errorf("output %q has offset %d, want %d", o.Text, o.Offset, all.Len())
			}
			all.WriteString(o.Text)
		}
		stored(t, w, r)
		return r
	}
	for cut := range len(text) {
		all.Reset()
		w := NewWriter(Options{Mode: Full}, Summary{}, 1)
		w.Print(Stdout, 0, []byte(text[:cut]))
		r := read(w)
		// Another server continues. The sandbox repeats everything that the program has printed.
		next, err := Continue(Options{Mode: Off}, r, Summary{Mode: Full})
		if err != nil {
			t.Fatal(err)
		}
		next.Print(Stdout, 0, []byte(text))
		next.Print(Stdout, 0, []byte(text))
		next.Finish(Stdout, []byte(text), "!\n")
		read(next)
		if want := Decode([]byte(text)) + "!\n"; all.String() != want {
			t.Errorf("cut at %d: output %q, want %q", cut, all.String(), want)
		}
	}
}

// Output is joined with the event before it only while the store cannot have that event.
func TestWriterJoins(t *testing.T) {
	w := NewWriter(Options{Mode: Full}, Summary{}, 1)
	offset := map[Stream]int64{}
	print := func(s Stream, text string) {
		w.Print(s, offset[s], []byte(text))
		offset[s] += int64(len(text))
	}
	texts := func() (r continuation.Record, all []string) {
		c, err := w.Chapter(&r)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range c.Events {
			var o Output
			if err := json.Unmarshal(line, &o); err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprintf("%s %d %s", o.Stream, o.Offset, o.Text))
		}
		return r, all
	}
	print(Stdout, "a")
	print(Stdout, "b")
	print(Stderr, "x")
	print(Stdout, "c")
	r, got := texts()
	if want := []string{"stdout 0 ab", "stderr 0 x", "stdout 2 c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// The store may have these events now.
	print(Stdout, "d")
	print(Stdout, strings.Repeat("e", maxJoined-1))
	print(Stdout, "f")
	stored(t, w, r)
	_, got = texts()
	if want := []string{"stdout 3 d" + strings.Repeat("e", maxJoined-1), fmt.Sprint("stdout ", 3+maxJoined, " f")}; !slices.Equal(got, want) {
		t.Errorf("after a write: got %q, want %q", got, want)
	}
}

// A journal that is full keeps no more values.
func TestWriterFull(t *testing.T) {
	w := NewWriter(Options{Mode: Full, Value: 64 << 10}, Summary{}, 1)
	value := json.RawMessage(`"` + strings.Repeat("x", 60<<10) + `"`)
	for range 10_000 {
		w.Note(&CallCompleted{Output: w.Value(value)})
	}
	if most := int64(maxJournal + 10_000*300); w.size > most {
		t.Errorf("the journal has %d bytes, want at most %d", w.size, most)
	}
	if got, want := string(w.Value(value)), `{"truncated":true,"bytes":61442,"head":""}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, small := range []string{"1", `{"a":"b"}`, "null"} {
		if got := string(w.Value(json.RawMessage(small))); got != small {
			t.Errorf("got %s, want %s", got, small)
		}
	}
	if got := w.Text(strings.Repeat("x", 1000)); len(got) > maxLate {
		t.Errorf("a text of %d bytes is kept", len(got))
	}
}

func TestWriterModes(t *testing.T) {
	for mode, want := range map[Mode]string{
		Full: "execution.started output call.started execution.ended", Calls: "execution.started call.started execution.ended", Off: "",
	} {
		w := NewWriter(Options{Mode: mode, Value: 1 << 10, Life: time.Hour}, Summary{ID: "x"}, 1)
		w.Note(&Started{Code: w.Code(json.RawMessage(`"secret"`))})
		w.Print(Stdout, 0, []byte("secret"))
		w.Note(&CallStarted{Input: w.Value(json.RawMessage(`["secret"]`))})
		w.End(&Ended{Status: StatusError, Error: "secret"})
		if got, _ := chapter(t, w); got != want {
			t.Errorf("mode %s: %s, want %s", mode, got, want)
		}
		var r continuation.Record
		c, err := w.Chapter(&r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(text), "secret"); got != (mode == Full) {
			t.Errorf("mode %s: the chapter has what the program said: %t", mode, got)
		}
		if c.Life != time.Hour || c.Summary == nil || !c.Summary.Ended {
			t.Errorf("mode %s: the last chapter has life %v and summary %+v", mode, c.Life, c.Summary)
		}
	}
}

// The summary has the time of the last event, even if a millisecond passes between both.
func TestWriterEndsOnce(t *testing.T) {
	for until := time.Now().Add(20 * time.Millisecond); time.Now().Before(until); {
		w := NewWriter(Options{Mode: Full}, Summary{ID: "x"}, 1)
		w.End(&Ended{Status: StatusCompleted})
		c, err := w.Chapter(&continuation.Record{})
		if err != nil {
			t.Fatal(err)
		}
		var last Head
		if err := json.Unmarshal(c.Events[0], &last); err != nil {
			t.Fatal(err)
		}
		if at := *w.Summary().Ended; !time.Time(at).Equal(time.Time(last.Time)) {
			t.Fatalf("the summary has ended at %v, the last event is of %v", time.Time(at), time.Time(last.Time))
		}
	}
	w := NewWriter(Options{Mode: Off}, Summary{ID: "x"}, 1)
	w.End(&Ended{Status: StatusCompleted})
	if at := w.Summary().Ended; at == nil || time.Since(time.Time(*at)) > time.Minute {
		t.Errorf("without events, the summary has ended at %v", at)
	}
}
