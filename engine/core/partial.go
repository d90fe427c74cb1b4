package core

import (
	"unicode/utf8"

	"fermata/engine/journal"
)

// mostPartial bounds what a pause tells of what a program has printed so far to one of its
// streams, in bytes of text.
const mostPartial = 64 << 10

// A Partial is what the client is told in a pause of what the program has printed so far: the end
// of each stream.
type Partial struct{ Stdout, Stderr string }

// Size returns how many bytes p takes as JSON.
func (p Partial) Size() int64 { return sizeAsJSON(p.Stdout) + sizeAsJSON(p.Stderr) }

// sizeAsJSON returns about how many bytes a text takes as JSON, without its quotes.
func sizeAsJSON(text string) int64 {
	n := len(text)
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"', c == '\\', c == '\n':
			n++
		case c < ' ':
			n += len(`\u0000`) - 1
		}
	}
	return int64(n)
}

// A Tail is the end of what a program has printed to one stream. The zero value is for a program
// that has printed nothing.
type Tail struct {
	decoder journal.Decoder
	// seen is how many bytes of the stream have come.
	seen int64
	// text is their text. It may be twice as long as what is told, so that it is seldom moved. cut
	// is true if its beginning is gone.
	text []byte
	cut  bool
}

// Add adds the bytes of the stream from an offset on, as far as they are new.
func (t *Tail) Add(offset int64, data []byte) {
	known := t.seen - offset
	if known < 0 || known >= int64(len(data)) {
		return
	}
	t.seen = offset + int64(len(data))
	t.text = append(t.text, t.decoder.Write(data[known:])...)
	if len(t.text) > 2*mostPartial {
		t.trim()
	}
}

// trim drops all of the text but its last mostPartial bytes.
func (t *Tail) trim() {
	from := len(t.text) - mostPartial
	if from <= 0 {
		return
	}
	for from < len(t.text) && !utf8.RuneStart(t.text[from]) {
		from++
	}
	t.text, t.cut = t.text[:copy(t.text, t.text[from:])], true
}

// String returns the text. A mark tells that its beginning is gone.
func (t *Tail) String() string {
	t.trim()
	if t.cut {
		return "…" + string(t.text)
	}
	return string(t.text)
}
