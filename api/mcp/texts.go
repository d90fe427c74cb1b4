package mcp

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shorten returns at most the given number of bytes from the beginning of a text.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return whole(s[:most]) + "…"
}

// middle returns a text with at most the given number of bytes as it is. Of a longer one it returns the
// beginning and the end, and says how much is left out between them.
func middle(s string, most int) string {
	if len(s) <= most {
		return s
	}
	head, tail := whole(s[:most/2]), s[len(s)-most/2:]
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return fmt.Sprintf("%s\n[… %d bytes are left out here …]\n%s", head, len(s)-len(head)-len(tail), tail)
}

// whole returns a text without an incomplete character at its end.
func whole(s string) string {
	for range utf8.UTFMax {
		if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size != 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s
}

// printable returns a text with escapes in place of control characters and invisible characters.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}

// ascii returns a text with escapes in place of everything but printable ASCII characters. A text that a
// person approves must not look like another one.
func ascii(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= ' ' && r <= '~' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}
