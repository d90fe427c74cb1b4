package journal

import (
	"slices"
	"unicode/utf8"
)

// A Decoder turns the output of a program into text, piece by piece. Each maximal invalid part is replaced
// by one U+FFFD, as in Python's bytes.decode("utf-8", errors="replace"). The text does not depend on where
// the pieces end. The zero value is a decoder at the beginning of its stream.
type Decoder struct {
	// held is the beginning of a character whose other bytes have not arrived yet.
	held [utf8.UTFMax]byte
	n    int
}

// Write returns the text of the next bytes. An incomplete character at their end is held back until its
// other bytes arrive.
func (d *Decoder) Write(b []byte) string {
	if d.n == 0 && utf8.Valid(b) {
		return string(b)
	}
	b = slices.Concat(d.held[:d.n], b)
	d.n = 0
	text := make([]byte, 0, len(b))
	for len(b) > 0 {
		if !utf8.FullRune(b) {
			d.n = copy(d.held[:], b)
			break
		}
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			// All bytes that could be the beginning of one character are one invalid part.
			for size < len(b) && !utf8.FullRune(b[:size+1]) {
				size++
			}
		}
		text = utf8.AppendRune(text, r)
		b = b[size:]
	}
	return string(text)
}

// Held returns how many bytes are held back.
func (d *Decoder) Held() int { return d.n }

// Close returns the text for the bytes that are held back, after which nothing follows.
func (d *Decoder) Close() string {
	if d.n == 0 {
		return ""
	}
	d.n = 0
	return string(utf8.RuneError)
}

// Decode returns all of data as text.
func Decode(data []byte) string {
	var d Decoder
	return d.Write(data) + d.Close()
}
