package core

import (
	"bytes"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// maxValue bounds what a program returns, in bytes of JSON. The runner applies it as well: it
// sends the text of a larger value, cut.
const maxValue = 64_000

// returned checks what a worker says that its program has returned, and returns it in a form that
// every reader of JSON accepts. It returns nothing for null, and for what no worker of ours
// sends: it is the program that has forged it.
func returned(value jsontext.Value) json.RawMessage {
	if len(value) > maxValue || TooDeep(value) {
		return nil
	}
	value, err := strict(value.Clone())
	if err != nil || bytes.Equal(value, []byte("null")) {
		return nil
	}
	return json.RawMessage(value)
}

// strict returns an input in a form that every reader of JSON accepts. U+FFFD replaces half a
// surrogate pair and what is not UTF-8. White space is dropped, since the answer that is stored
// has none either. An object with a duplicate name is an error.
func strict(input jsontext.Value) (jsontext.Value, error) {
	err := input.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil || input.IsValid() {
		return input, err
	}
	err = input.Format(jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(false))
	return input, err
}

// TooDeep reports whether JSON nests deeper than MaxDepth. It does not check the syntax.
func TooDeep(value []byte) bool {
	// Counting brackets is much faster than reading the value, and settles most cases.
	if bytes.Count(value, []byte{'['})+bytes.Count(value, []byte{'{'}) <= MaxDepth {
		return false
	}
	depth := 0
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '"':
			for i++; i < len(value) && value[i] != '"'; i++ {
				if value[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			if depth++; depth > MaxDepth {
				return true
			}
		case ']', '}':
			depth--
		}
	}
	return false
}
