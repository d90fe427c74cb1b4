package stubs

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// appendString appends s as a Python string literal in ASCII. Bytes that are not UTF-8
// become U+FFFD.
func appendString(dst, s []byte) []byte {
	return append(appendEscaped(append(dst, '"'), s), '"')
}

// appendEscaped appends s as in a string literal, without the quotes around it.
func appendEscaped(dst, s []byte) []byte {
	plain := 0 // the start of the current run of characters that need no escape
	for i := 0; i < len(s); {
		if c := s[i]; ' ' <= c && c < 0x7F && c != '"' && c != '\\' {
			i++
			continue
		}
		r, size := utf8.DecodeRune(s[i:])
		dst = appendEscape(append(dst, s[plain:i]...), r)
		i += size
		plain = i
	}
	return append(dst, s[plain:]...)
}

func appendEscape(dst []byte, r rune) []byte {
	switch {
	case r == '\n':
		return append(dst, `\n`...)
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r < 0x100:
		return appendHex(append(dst, `\x`...), r, 2)
	case r < 0x10000:
		return appendHex(append(dst, `\u`...), r, 4)
	default:
		return appendHex(append(dst, `\U`...), r, 8)
	}
}

func appendHex(dst []byte, r rune, digits int) []byte {
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[r>>shift&0xF])
	}
	return dst
}

// appendReadable appends s as a literal for human readers: printable characters stay as
// they are. Go's escapes have the same meaning in Python.
func appendReadable(dst, s []byte) []byte {
	return strconv.AppendQuote(dst, string(s))
}

// appendLiteral appends v, which must be valid JSON, as a Python literal. It calls quote
// to write strings: besides strings, only three names differ between the two languages.
// The caller must limit v, since Python refuses integers of more than 4300 digits and
// brackets nested 200 deep.
func appendLiteral(dst []byte, v jsontext.Value, quote func(dst, s []byte) []byte) []byte {
	for i := 0; i < len(v); {
		switch c := v[i]; c {
		case '"':
			end := i + stringLen(v[i:])
			dst = quote(dst, unquote(v[i:end]))
			i = end
		case 't':
			dst = append(dst, "True"...)
			i += len("true")
		case 'f':
			dst = append(dst, "False"...)
			i += len("false")
		case 'n':
			dst = append(dst, "None"...)
			i += len("null")
		case ',', ':':
			dst = append(dst, c, ' ')
			i++
		case ' ', '\t', '\r', '\n':
			i++
		default:
			dst = append(dst, c)
			i++
		}
	}
	return dst
}

// stringLen returns the length of the JSON string at the start of v, quotes included.
func stringLen(v []byte) int {
	i := 1
	for v[i] != '"' {
		if v[i] == '\\' {
			i++
		}
		i++
	}
	return i + 1
}

// firstOf returns the first value of a JSON array that is not empty.
func firstOf(array jsontext.Value) jsontext.Value {
	d := jsontext.NewDecoder(bytes.NewReader(array), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadToken(); err != nil {
		return nil
	}
	first, err := d.ReadValue()
	if err != nil {
		return nil
	}
	return first.Clone()
}
