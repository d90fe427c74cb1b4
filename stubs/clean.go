package stubs

import (
	"strings"
	"unicode"
)

// clean returns an untrusted text on one line, in a form that is safe in Markdown between quotation marks or
// backquotes. Characters that are invisible or change the direction of the text are removed, and characters
// that end a quotation, code or a tag are replaced. The result has no links.
func clean(text string) string {
	var b strings.Builder
	blank := false // whether a blank must be written before the next character
	var last rune  // the character that was written last
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			blank = b.Len() > 0
			continue
		case isUnseen(r):
			continue
		}
		if blank {
			b.WriteByte(' ')
			blank, last = false, ' '
		}
		switch r {
		case '"', '`', '“', '”', '„', '‟', '«', '»', '＂', '｀', 'ˋ':
			r = '\''
		case '<', '＜':
			r = '‹'
		case '>', '＞':
			r = '›'
		case '(':
			if last == ']' {
				b.WriteByte(' ')
			}
		}
		b.WriteRune(r)
		last = r
	}
	return b.String()
}

// unseen are characters that count as letters or marks but are invisible.
var unseen = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x034F, Hi: 0x034F, Stride: 1}, // combining grapheme joiner
		{Lo: 0x115F, Hi: 0x1160, Stride: 1}, // Hangul fillers
		{Lo: 0x17B4, Hi: 0x17B5, Stride: 1}, // Khmer inherent vowels
		{Lo: 0x180B, Hi: 0x180F, Stride: 1}, // Mongolian variation selectors
		{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // blank Braille pattern
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
		{Lo: 0xFE00, Hi: 0xFE0F, Stride: 1}, // variation selectors
		{Lo: 0xFFA0, Hi: 0xFFA0, Stride: 1}, // half-width Hangul filler
	},
	R32: []unicode.Range32{
		{Lo: 0xE0000, Hi: 0xE0FFF, Stride: 1}, // tags, variation selectors
	},
}

// isUnseen reports whether r is invisible, or changes how other characters are shown. Bytes that are not UTF-8
// count as invisible.
func isUnseen(r rune) bool {
	return !unicode.IsGraphic(r) || r == unicode.ReplacementChar || unicode.Is(unseen, r)
}

// cut returns at most limit characters of a clean text.
func cut(text string, limit int) string {
	n := 0
	for i := range text {
		if n++; n >= limit && len([]rune(text[i:])) > 1 {
			return strings.TrimRight(text[:i], " ") + docCut
		}
	}
	return text
}

// quoted returns an untrusted text in quotation marks, clean and truncated, or "" if nothing is left of it.
func quoted(text string, limit int) string {
	// No character has more than four bytes; most of the rest need not be read.
	const room = 16
	if text = cut(clean(text[:min(len(text), limit*room)]), limit); text == "" {
		return ""
	}
	return `"` + text + `"`
}
