package journal

import (
	"slices"
	"unicode/utf8"
)

// A Decoder makes text of what a program prints, piece by piece. Each maximal part that is no
// UTF-8 becomes one U+FFFD, as in Python's bytes.decode("utf-8", errors="replace"), wherever
// the pieces are cut. The zero value is a decoder at the beginning of its stream.
type Decoder struct {
	// held is the beginning of a character whose other bytes have not come yet.
	held [utf8.UTFMax]byte
	n    int
}

// Write returns the text of the next bytes. The beginning of a character at their end is held
// back until its other bytes come.
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
			// As much of it as could begin a character is one invalid part.
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

// Close returns what becomes of the bytes that are held back, as nothing follows them.
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
