package journal

import (
	"bytes"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A truncated value stands for a value that is too large to be kept.
type truncated struct {
	Truncated bool   `json:"truncated"`
	Bytes     int    `json:"bytes"`
	Head      string `json:"head"`
}

// maxHead bounds the head of a value that is cut, in bytes.
const maxHead = 20_480

// compactSize returns how many bytes the compact form of a JSON value has.
func compactSize(v []byte) int {
	size := 0
	compact(v, func(part []byte) bool {
		size += len(part)
		return true
	})
	return size
}

// compact yields the parts of a JSON value that remain when the white space between its tokens is
// dropped, until yield returns false.
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

// headOf returns the beginning of a value: of the text of a string, or of another value's compact
// form. It ends with a whole character.
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
	// No character of text takes more than six bytes of JSON for each byte of its own.
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
		most-- // The cut was within an escape sequence.
	}
}

// whole returns text without an unfinished character at its end.
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
