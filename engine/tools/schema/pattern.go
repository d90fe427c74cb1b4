package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The limits of a pattern. Its size is the number of instructions of its compiled form.
const (
	maxPattern     = 4 << 10 // bytes
	maxPatternSize = 5000
)

// A pattern is a regular expression with its size, from which the cost of a match is computed.
type pattern struct {
	*regexp.Regexp
	size int
}

// CheckPattern returns an error that says why a schema may not have a pattern, or nil. Patterns are those of
// RE2, which has no look-arounds and no back-references: the time of a match is linear in the length of the
// text.
func CheckPattern(text string) error {
	_, err := compilePattern(text)
	return err
}

// unicodeEscapes replaces escapes of JavaScript, such as \u00e9, by those of RE2, such as \x{00e9}.
func unicodeEscapes(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		if digits := text[i+2 : min(i+6, len(text))]; text[i+1] == 'u' && hexDigits.MatchString(digits) {
			b.WriteString(`\x{` + digits + `}`)
			i += 5
			continue
		}
		b.WriteString(text[i : i+2])
		i++
	}
	return b.String()
}

var hexDigits = regexp.MustCompile(`^[0-9A-Fa-f]{4}$`)

func compilePattern(text string) (jsonschema.Regexp, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("has %d bytes; at most %d are allowed", len(text), maxPattern)
	}
	text = unicodeEscapes(text)
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, errors.New("is not a regular expression of RE2, which has no look-arounds and no back-references")
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > maxPatternSize {
		return nil, errors.New("is too large once its repetitions are written out")
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, errors.New("is not a regular expression of RE2")
	}
	return &pattern{Regexp: compiled, size: len(program.Inst)}, nil
}

// matches reports whether a text matches. Before it matches, it spends the steps that this may cost.
func (w *walk) matches(r jsonschema.Regexp, text string) bool {
	size := maxPatternSize
	if p, ok := r.(*pattern); ok {
		size = p.size
	}
	if !w.spend(4 + len(text)*size/patternWork) {
		return false
	}
	return r.MatchString(text)
}
