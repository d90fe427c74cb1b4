package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The limits of an input.
const (
	MaxInput  = 1 << 20 // bytes
	MaxDepth  = 64      // levels of objects and lists
	MaxValues = 100_000 // values of all levels, and names of members

	maxDigits   = 1000 // characters of a number
	maxExponent = 400
)

// Canonical checks that raw is one value of strict JSON, and returns it in its canonical form, which is the
// only form that is checked, shown, recorded and sent. Members are sorted by their names, blanks are removed,
// strings are escaped only where they must be, and numbers keep their digits.
//
// Two members of an object with the same name are an error, even if the names are written with different
// escapes, because two readers could take different ones. Half of a surrogate pair is an error, too, and so
// are bytes that are not UTF-8 and numbers that are too large to compute with.
func Canonical(raw json.RawMessage) (json.RawMessage, error) {
	return strict(raw, true)
}

// Strict checks raw as Canonical does, and returns it with its members in the order in which they stand. The
// order of a schema's properties is that of the parameters of its tool.
func Strict(raw json.RawMessage) (json.RawMessage, error) {
	return strict(raw, false)
}

func strict(raw json.RawMessage, sorted bool) (json.RawMessage, error) {
	if err := checkText(raw, MaxInput); err != nil {
		return nil, err
	}
	value := jsontext.Value(bytes.Clone(raw))
	err := value.Format(
		jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false), jsontext.PreserveRawStrings(false),
		jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false),
		jsontext.ReorderRawObjects(sorted), jsontext.Multiline(false), jsontext.SpaceAfterColon(false), jsontext.SpaceAfterComma(false),
		jsontext.EscapeForHTML(false), jsontext.EscapeForJS(false),
	)
	if err != nil {
		return nil, syntaxError(err)
	}
	if len(value) > MaxInput {
		return nil, fmt.Errorf("the input has more than %d bytes", MaxInput)
	}
	return json.RawMessage(value), nil
}

// checkText checks the limits of a text before it is parsed: its size, its depth, the number of values, and
// each number. The text need not be valid JSON.
func checkText(raw []byte, limit int) error {
	if len(raw) > limit {
		return fmt.Errorf("the input has %d bytes; at most %d are allowed", len(raw), limit)
	}
	depth, values := 0, 1
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; c {
		case '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > MaxDepth {
				return fmt.Errorf("the input has more than %d levels of objects and lists", MaxDepth)
			}
			values++
		case '}', ']':
			depth--
		case ',', ':':
			values++
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			start := i
			for i+1 < len(raw) && strings.IndexByte("0123456789+-.eE", raw[i+1]) >= 0 {
				i++
			}
			if err := checkNumber(raw[start : i+1]); err != nil {
				return err
			}
		}
		if values > MaxValues {
			return fmt.Errorf("the input has more than %d values", MaxValues)
		}
	}
	return nil
}

// checkNumber refuses numbers with which a computation would need a lot of memory.
func checkNumber(digits []byte) error {
	if len(digits) > maxDigits {
		return fmt.Errorf("the input has a number of %d characters; at most %d are allowed", len(digits), maxDigits)
	}
	if i := bytes.IndexAny(digits, "eE"); i >= 0 {
		if n, err := strconv.Atoi(string(digits[i+1:])); err != nil || n > maxExponent || n < -maxExponent {
			return fmt.Errorf("the input has a number with an exponent beyond %d", maxExponent)
		}
	}
	return nil
}

// syntaxError returns an error that says why a text is not strict JSON, without quoting it.
func syntaxError(err error) error {
	var syntactic *jsontext.SyntacticError
	place := ""
	if errors.As(err, &syntactic) {
		if at := pointerPath(syntactic.JSONPointer); at != "" {
			place = " at " + at
		} else {
			place = fmt.Sprintf(" at byte %d", syntactic.ByteOffset)
		}
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return fmt.Errorf("the input is not strict JSON: two members of one object have the same name%s", place)
	}
	cause := "it is broken or incomplete"
	if syntactic != nil && syntactic.Err != nil {
		switch text := syntactic.Err.Error(); {
		case strings.Contains(text, "surrogate"):
			cause = "a text has half of a surrogate pair"
		case strings.Contains(text, "UTF-8"):
			cause = "a text is not UTF-8"
		}
	}
	return fmt.Errorf("the input is not strict JSON: %s%s", cause, place)
}

// pointerPath returns a JSON Pointer in the form of Error.Path.
func pointerPath(pointer jsontext.Pointer) string {
	var path []step
	for token := range pointer.Tokens() {
		if i, err := strconv.Atoi(token); err == nil && i >= 0 {
			path = append(path, step{index: i, list: true})
		} else {
			path = append(path, step{name: token})
		}
	}
	return pathText(path)
}
