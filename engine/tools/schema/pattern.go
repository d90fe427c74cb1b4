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

// A pattern is a regular expression that knows what it costs.
type pattern struct {
	*regexp.Regexp
	size int
}

// CheckPattern tells why a schema may not have a pattern, or nil. Patterns are those of RE2, the
// time of which grows with the length of the text only: there are no look-arounds and no
// back-references.
func CheckPattern(text string) error {
	_, err := compilePattern(text)
	return err
}

// unicodeEscapes writes \u00e9, as JavaScript has it, as \x{00e9}.
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

// matches tells whether a text matches. What it may cost is spent before.
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
