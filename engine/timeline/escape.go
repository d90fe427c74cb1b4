package timeline

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"fermata/engine/outputs"
)

// headers are the beginnings of the lines that structure the rendered text, in the form that folded returns.
// Quoted text must not have such lines.
var headers = []string{"[toolresult", "[aiagentsay]", "runtimeerror:", "fileerrors:", "succeeded:"}

// quote returns a text in which each line that begins like a header is indented by one more space. A line
// ends at each character at which any reader might end it.
func quote(text string) string {
	var b strings.Builder
	for rest := text; rest != ""; {
		var line string
		line, rest = nextLine(rest)
		if likeHeader(line) {
			b.WriteByte(' ')
		}
		b.WriteString(line)
	}
	return b.String()
}

// nextLine returns the first line of a text, with the character that ends it, and the rest of the text.
func nextLine(text string) (line, rest string) {
	i := strings.IndexFunc(text, endsLine)
	if i < 0 {
		return text, ""
	}
	_, n := utf8.DecodeRuneInString(text[i:])
	return text[:i+n], text[i+n:]
}

// endsLine reports whether a character ends a line, in Python or elsewhere.
func endsLine(r rune) bool { return r == 0 || outputs.EndsLine(r) }

// likeHeader reports whether a line begins like a header. Blanks and invisible characters do not count.
func likeHeader(line string) bool {
	start := folded(line)
	for _, h := range headers {
		if strings.HasPrefix(start, h) {
			return true
		}
	}
	return false
}

// folded returns the beginning of a line in lower case, without blanks and invisible characters, and with
// ASCII characters in place of full-width ones. It examines only as many characters as a header has, and
// some invisible ones in front of it.
func folded(line string) string {
	const enough = 16
	var b strings.Builder
	for _, r := range line {
		if b.Len() >= enough {
			break
		}
		switch {
		case blank(r):
			continue
		case r >= '！' && r <= '～': // Full-width forms of ASCII characters.
			r -= '！' - '!'
		}
		if fold, ok := brackets[r]; ok {
			r = fold
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// brackets are characters that look like brackets.
var brackets = map[rune]rune{
	'⁅': '[', '⟦': '[', '【': '[', '〔': '[', '〖': '[', '〚': '[', '﹝': '[', '❲': '[', '⦋': '[', '⦗': '[', '｢': '[', '「': '[', '﹇': '[',
	'⁆': ']', '⟧': ']', '】': ']', '〕': ']', '〗': ']', '〛': ']', '﹞': ']', '❳': ']', '⦌': ']', '⦘': ']', '｣': ']', '」': ']', '﹈': ']',
	'：': ':', '﹕': ':', '꞉': ':',
}

// blank reports whether a character is a blank or invisible.
func blank(r rune) bool {
	switch r {
	case '\u115f', '\u1160', '\u3164', '\uffa0', '\u2800', '\u034f', '\u17b4', '\u17b5', '\ufffd':
		return true
	}
	return unicode.In(r, unicode.White_Space, unicode.Cc, unicode.Cf, unicode.Co, unicode.Mn, unicode.Me, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// oneLine returns a text on one line, truncated if it is long.
func oneLine(text string) string {
	text = outputs.Cut(text, 2<<10)
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if endsLine(r) || unicode.In(r, unicode.Cc, unicode.Bidi_Control) {
			return ' '
		}
		return r
	}, text))
}
