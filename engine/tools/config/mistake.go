package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// A Mistake is an error in a file, which therefore cannot be used. Its text says what to do. It contains
// neither secrets nor control characters.
type Mistake struct { //nolint:errname // it is what the operator has made
	// File is the name of the file or directory.
	File string
	// Line counts from 1. It is 0 if the mistake has no line.
	Line int
	// Path leads to the place within the file, such as toolsets.weather.http.tools[0].method. It is
	// empty if the whole file is meant.
	Path string
	Text string
}

// Error returns file, line, path and text, with colons in between.
func (m *Mistake) Error() string {
	var b strings.Builder
	b.WriteString(Printable(m.File))
	if m.Line > 0 {
		b.WriteString(":" + strconv.Itoa(m.Line))
	}
	b.WriteString(": ")
	if m.Path != "" {
		b.WriteString(m.Path + ": ")
	}
	b.WriteString(m.Text)
	return b.String()
}

// Mistakes returns the mistakes that the error of Read has joined, in their order.
func Mistakes(err error) []*Mistake {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return nil
	}
	var mistakes []*Mistake
	for _, e := range joined.Unwrap() {
		if m, ok := errors.AsType[*Mistake](e); ok {
			mistakes = append(mistakes, m)
		}
	}
	return mistakes
}

// Printable returns a text in which invisible characters are escaped: control characters, line ends, and
// characters that change the direction of the text. Quotes and backslashes are not escaped.
func Printable(text string) string {
	printable := func(r rune) bool { return unicode.IsPrint(r) && r != unicode.ReplacementChar }
	if !strings.ContainsFunc(text, func(r rune) bool { return !printable(r) }) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if printable(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
	}
	return b.String()
}

// quote returns a text of the file in quotes, truncated and in ASCII, so that letters that look alike can be
// told apart.
func quote(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		return strconv.QuoteToASCII(string(runes[:most])) + "…"
	}
	return strconv.QuoteToASCII(text)
}

// orList returns "a, b or c".
func orList(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// hint returns a question with the known name that is most similar to a given one, or "" if none is similar.
func hint(name string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		if d := editDistance(strings.ToLower(name), strings.ToLower(k)); d < distance && d < len(k) {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", Printable(best))
}

// editDistance returns how many letters must be inserted, removed or replaced to get from a to b. For texts
// of very different lengths it returns a large number at once.
func editDistance(a, b string) int {
	const far = 100
	if len(a) > far || len(b) > far {
		return far
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			row[j+1] = min(replace, above+1, row[j]+1)
			diagonal = above
		}
	}
	return row[len(b)]
}
