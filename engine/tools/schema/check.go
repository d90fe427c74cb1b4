package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The costs of work in a check. A check has a budget of steps, which keeps it below 50 ms on a slow machine.
// One step applies one schema to one value. Other work counts as the steps that take as long.
const (
	maxSteps    = 200_000
	patternWork = 50  // bytes of a text times the size of a pattern that make a step
	enumWork    = 10  // values that are compared with one of an enum
	failureWork = 20  // steps of a failure whose text is made
	textWork    = 100 // bytes of a text that are counted or compared
)

// An Error says what is wrong with an input.
type Error struct {
	// Path is the place in the input, such as filter.tags[2]. It is empty for the whole input.
	Path string
	// Text says what is wrong there.
	Text string
}

// Error returns both as a sentence.
func (e *Error) Error() string {
	if e.Path == "" {
		return "the input " + e.Text
	}
	return e.Path + " " + e.Text
}

// Check returns an *Error about the first thing in a canonical input that does not match the schema, or nil.
// At the top level, null is allowed for a member that is not required.
//
// The work is limited: an input that takes more work than any sensible one is refused.
func (s *Schema) Check(input json.RawMessage) error {
	if err := checkText(input, MaxInput); err != nil {
		return err
	}
	v, err := parse(input)
	if err != nil {
		return err
	}
	w := &walk{steps: maxSteps}
	if o, ok := v.(*object); ok {
		if failure := s.misspelled(w, o); failure != nil {
			return failure
		}
		v = s.adapt(w, o)
	}
	if failure := w.check(s.root, v); failure != nil {
		return failure
	}
	if w.over {
		return tooMuch()
	}
	return nil
}

func tooMuch() *Error {
	return &Error{Text: "is too large for its schema: checking it takes too much work"}
}

// adapt removes members that are null and not required, and converts texts that stand for numbers, true and
// false.
func (s *Schema) adapt(w *walk, o *object) *object {
	root := described(s.root)
	adapted := &object{members: make([]member, 0, len(o.members))}
	for _, m := range o.members {
		property := root.Properties[m.name]
		if m.value == nil && property != nil && !slices.Contains(root.Required, m.name) {
			continue
		}
		if text, ok := m.value.(string); ok && property != nil && s.texts[m.name] && !w.fits(property, text) {
			if read, ok := readText(text); ok {
				m.value = read
			}
		}
		adapted.members = append(adapted.members, m)
	}
	return adapted
}

// readText reads a text that is a number, true or false.
func readText(text string) (any, bool) {
	if checkText([]byte(text), maxDigits) != nil {
		return nil, false
	}
	v, err := parse([]byte(text))
	if err != nil || strings.TrimSpace(text) != text {
		return nil, false
	}
	switch v.(type) {
	case json.Number, bool:
		return v, true
	}
	return nil, false
}

// A walk is one check of one value. It has a method for each keyword, or group of keywords, of JSON Schema.
type walk struct {
	steps int
	// over is true when the steps are used up. Then nothing is checked any more.
	over bool
	// quiet is above 0 while only yes or no matters. Then all failures are errQuiet.
	quiet int
	path  []step
}

// spend takes n steps from the budget, and reports whether they were left.
func (w *walk) spend(n int) bool {
	if w.steps -= n; w.steps < 0 {
		w.over = true
	}
	return !w.over
}

// fail returns the failure for the present place in the input.
func (w *walk) fail(format string, args ...any) *Error {
	if w.quiet > 0 {
		return errQuiet
	}
	w.spend(failureWork)
	return &Error{Path: pathText(w.path), Text: fmt.Sprintf(format, args...)}
}

// errQuiet is the failure while quiet is above 0, when nobody reads the text.
var errQuiet = &Error{Text: "does not fit"}

// fits reports whether a value fits a schema.
func (w *walk) fits(s *jsonschema.Schema, v any) bool {
	w.quiet++
	defer func() { w.quiet-- }()
	return w.check(s, v) == nil
}

// below checks a value within the present one.
func (w *walk) below(s *jsonschema.Schema, v any, at step) *Error {
	w.path = append(w.path, at)
	failure := w.check(s, v)
	w.path = w.path[:len(w.path)-1]
	return failure
}

// check returns the first failure of a value. If the budget ends, that is the failure.
func (w *walk) check(s *jsonschema.Schema, v any) *Error {
	if !w.spend(1) {
		return tooMuch()
	}
	if s.Bool != nil {
		if *s.Bool {
			return nil
		}
		return w.fail("is not allowed")
	}
	if s.Ref != nil {
		if failure := w.check(s.Ref, v); failure != nil || s.DraftVersion < 2019 {
			return failure
		}
	}
	if s.Types != nil && !s.Types.IsEmpty() && !hasType(s, v) {
		return w.fail("must be %s, not %s", later(typesText, s.Types), kindOf(v))
	}
	if failure := w.constant(s, v); failure != nil {
		return failure
	}
	var failure *Error
	switch v := v.(type) {
	case *object:
		failure = w.object(s, v)
	case []any:
		failure = w.list(s, v)
	case string:
		failure = w.text(s, v)
	case json.Number:
		failure = w.number(s, v)
	}
	if failure != nil {
		return failure
	}
	if failure := w.combined(s, v); failure != nil {
		return failure
	}
	return w.unevaluated(s, v)
}

// constant checks const and enum.
func (w *walk) constant(s *jsonschema.Schema, v any) *Error {
	if s.Const != nil && !w.equal(v, *s.Const) {
		return w.fail("must be %s", later(valueText, *s.Const))
	}
	if s.Enum == nil {
		return nil
	}
	if !w.spend(len(s.Enum.Values) / enumWork) {
		return tooMuch()
	}
	for _, value := range s.Enum.Values {
		if w.equal(v, value) {
			return nil
		}
	}
	return w.fail("must be %s", later(valuesText, s.Enum.Values))
}

// combined checks the keywords that combine schemas.
func (w *walk) combined(s *jsonschema.Schema, v any) *Error {
	for _, part := range s.AllOf {
		if failure := w.check(part, v); failure != nil {
			return failure
		}
	}
	if len(s.AnyOf) > 0 && !slices.ContainsFunc(s.AnyOf, func(part *jsonschema.Schema) bool { return w.fits(part, v) }) {
		return w.nearest(s.AnyOf, v)
	}
	if len(s.OneOf) > 0 {
		fitting := 0
		for _, part := range s.OneOf {
			if w.fits(part, v) {
				fitting++
			}
			if fitting > 1 {
				return w.fail("must fit exactly one of %d alternatives, and fits several", len(s.OneOf))
			}
		}
		if fitting == 0 {
			return w.nearest(s.OneOf, v)
		}
	}
	if s.Not != nil && w.fits(s.Not, v) && !w.over {
		return w.fail("has a form that is excluded")
	}
	if s.If != nil {
		then := s.Else
		if w.fits(s.If, v) {
			then = s.Then
		}
		if then != nil {
			return w.check(then, v)
		}
	}
	return nil
}

// nearest returns the failure of a value that matches none of several alternatives. It is the failure of the
// alternative that matched up to the deepest place, if there is one such alternative.
func (w *walk) nearest(alternatives []*jsonschema.Schema, v any) *Error {
	if w.over {
		return tooMuch()
	}
	own := w.fail("fits none of %d alternatives", len(alternatives))
	if w.quiet > 0 {
		return own
	}
	if len(alternatives) == 1 {
		return w.check(alternatives[0], v)
	}
	best, unique := own, false
	for _, part := range alternatives {
		failure := w.check(part, v)
		if failure == nil || w.over {
			return own
		}
		switch {
		case len(failure.Path) > len(best.Path):
			best, unique = failure, true
		case len(failure.Path) == len(best.Path):
			unique = false
		}
	}
	if !unique {
		return own
	}
	return best
}

// text checks the keywords for texts.
func (w *walk) text(s *jsonschema.Schema, text string) *Error {
	if s.MinLength != nil || s.MaxLength != nil {
		if !w.spend(len(text) / textWork) {
			return tooMuch()
		}
		n := utf8.RuneCountInString(text)
		if s.MinLength != nil && n < *s.MinLength {
			return w.fail("must have at least %s, not %d", count(*s.MinLength, "character"), n)
		}
		if s.MaxLength != nil && n > *s.MaxLength {
			return w.fail("must have at most %s, not %d", count(*s.MaxLength, "character"), n)
		}
	}
	if s.Pattern != nil && !w.matches(s.Pattern, text) {
		if w.over {
			return tooMuch()
		}
		return w.fail("must match the pattern %s", later(shown, s.Pattern.String()))
	}
	return nil
}

// number checks the keywords for numbers.
func (w *walk) number(s *jsonschema.Schema, n json.Number) *Error {
	if s.Minimum == nil && s.Maximum == nil && s.ExclusiveMinimum == nil && s.ExclusiveMaximum == nil && s.MultipleOf == nil {
		return nil
	}
	if !w.spend(numberWork(n)) {
		return tooMuch()
	}
	value := rational(n)
	switch {
	case s.Minimum != nil && value.Cmp(s.Minimum) < 0:
		return w.fail("must be at least %s", later(ratText, s.Minimum))
	case s.Maximum != nil && value.Cmp(s.Maximum) > 0:
		return w.fail("must be at most %s", later(ratText, s.Maximum))
	case s.ExclusiveMinimum != nil && value.Cmp(s.ExclusiveMinimum) <= 0:
		return w.fail("must be more than %s", later(ratText, s.ExclusiveMinimum))
	case s.ExclusiveMaximum != nil && value.Cmp(s.ExclusiveMaximum) >= 0:
		return w.fail("must be less than %s", later(ratText, s.ExclusiveMaximum))
	case s.MultipleOf != nil && !rational(n).Quo(value, s.MultipleOf).IsInt():
		return w.fail("must be a multiple of %s", later(ratText, s.MultipleOf))
	}
	return nil
}

// equal compares a value of an input with one of a schema.
func (w *walk) equal(v, other any) bool {
	switch v := v.(type) {
	case nil:
		return other == nil
	case bool:
		o, ok := other.(bool)
		return ok && o == v
	case string:
		o, ok := other.(string)
		return ok && len(o) == len(v) && w.spend(len(v)/textWork) && o == v
	case json.Number:
		o, ok := other.(json.Number)
		if !ok || plain(v) && plain(o) {
			return ok && sameNumber(v, o)
		}
		return w.spend(numberWork(v)+numberWork(o)) && sameNumber(v, o)
	case []any:
		o, ok := other.([]any)
		if !ok || len(o) != len(v) {
			return false
		}
		for i := range v {
			if !w.spend(1) || !w.equal(v[i], o[i]) {
				return false
			}
		}
		return true
	case *object:
		o, ok := other.(map[string]any)
		if !ok || len(o) != len(v.members) {
			return false
		}
		for _, m := range v.members {
			value, found := o[m.name]
			if !found || !w.spend(1) || !w.equal(m.value, value) {
				return false
			}
		}
		return true
	}
	return false
}

// numberWork is what an exact computation with a number costs.
func numberWork(n json.Number) int {
	work := 3 + len(n)/20
	if strings.ContainsAny(string(n), "eE") {
		work += 50
	}
	return work
}
