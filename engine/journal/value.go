package journal

import (
	"bytes"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A truncated stands in an event for a value that is too large to be kept.
type truncated struct {
	Truncated bool   `json:"truncated"`
	Bytes     int    `json:"bytes"`
	Head      string `json:"head"`
}

// maxHead is how many bytes of the beginning of a truncated value are kept.
const maxHead = 20_480

// compactSize returns the size of the compact form of a JSON value, in bytes.
func compactSize(v []byte) int {
	size := 0
	compact(v, func(part []byte) bool {
		size += len(part)
		return true
	})
	return size
}

// compact yields the parts of a JSON value between which there is white space outside of strings, until
// yield returns false.
func compact(v []byte, yield func([]byte) bool) {
	for begin := 0; begin < len(v); {
		switch v[begin] {
		case ' ', '\t', '\n', '\r':
			begin++
			continue
		}
		end := begin
		for end < len(v) && v[end] > ' ' {
			if v[end] == '"' {
				end = stringEnd(v, end)
				continue
			}
			end++
		}
		if !yield(v[begin:end]) {
			return
		}
		begin = end
	}
}

// stringEnd returns the offset after the JSON string that begins at an offset.
func stringEnd(v []byte, at int) int {
	for at++; at < len(v); {
		n := bytes.IndexAny(v[at:], `"\`)
		if n < 0 {
			return len(v)
		}
		at += n
		if v[at] == '"' {
			return at + 1
		}
		at += 2
	}
	return len(v)
}

// headOf returns the beginning of the text of a string, or of the compact form of another value. It does not
// split a character.
func headOf(v []byte) string {
	v = bytes.TrimLeft(v, " \t\r\n")
	if len(v) > 0 && v[0] == '"' {
		return headOfString(v)
	}
	head := make([]byte, 0, maxHead)
	compact(v, func(part []byte) bool {
		head = append(head, part[:min(len(part), maxHead-len(head))]...)
		return len(head) < maxHead
	})
	return whole(head)
}

// headOfString returns the beginning of the text of a JSON string.
func headOfString(v []byte) string {
	// JSON needs at most six bytes for each byte of the text.
	most := min(len(v), 1+6*maxHead)
	for {
		quoted := bytes.Clone(v[:most])
		if most < len(v) {
			quoted = append(quoted, '"')
		}
		text, err := jsontext.AppendUnquote(nil, quoted)
		if err == nil || most <= 1+6*(maxHead-2) {
			return whole(text[:min(len(text), maxHead)])
		}
		most-- // The text was cut within an escape sequence.
	}
}

// whole returns text without an incomplete character at its end.
func whole(text []byte) string {
	for i := 1; i <= min(utf8.UTFMax, len(text)); i++ {
		if at := len(text) - i; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				text = text[:at]
			}
			break
		}
	}
	return string(bytes.ToValidUTF8(text, []byte("\uFFFD")))
}
