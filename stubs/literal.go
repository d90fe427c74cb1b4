package stubs

import (
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// appendString appends s as a Python string literal in ASCII. A byte that is not
// UTF-8 becomes U+FFFD.
func appendString(dst, s []byte) []byte {
	dst = append(dst, '"')
	plain := 0 // where the run begins that needs no escape
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
	return append(append(dst, s[plain:]...), '"')
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

// appendReadable appends s as a literal for people: what can be printed stays as
// it is. Go's escapes mean the same in Python.
func appendReadable(dst, s []byte) []byte {
	return strconv.AppendQuote(dst, string(s))
}

// appendLiteral appends v, which is valid JSON, as a Python literal whose strings
// quote writes. The two languages differ in strings and in three names only. The
// caller bounds v: Python refuses an integer of 4300 digits and 200 brackets in
// one another.
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

// stringLen returns the length of the JSON string that v begins with.
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
