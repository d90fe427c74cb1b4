package config

import (
	"encoding/json"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// jsonNumber is a number as JSON writes it.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// json returns the value as JSON, in the order of the file. Numbers keep their digits.
func (v value) json() (json.RawMessage, bool) {
	dst, ok := v.appendJSON(nil)
	return dst, ok
}

func (v value) appendJSON(dst []byte) ([]byte, bool) {
	ok := true
	switch v.node.Kind {
	case yaml.MappingNode:
		dst = append(dst, '{')
		for i, e := range v.entries(MaxSchema) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendJSONText(dst, e.name), ':')
			member := false
			dst, member = e.place.appendJSON(dst)
			ok = ok && member
		}
		return append(dst, '}'), ok
	case yaml.SequenceNode:
		dst = append(dst, '[')
		for i, element := range v.list(MaxSchema) {
			if i > 0 {
				dst = append(dst, ',')
			}
			member := false
			dst, member = element.appendJSON(dst)
			ok = ok && member
		}
		return append(dst, ']'), ok
	default:
		return v.appendScalar(dst)
	}
}

func (v value) appendScalar(dst []byte) ([]byte, bool) {
	text := v.node.Value
	switch v.node.ShortTag() {
	case "!!null":
		return append(dst, "null"...), true
	case "!!bool":
		return append(dst, strings.ToLower(text)...), true
	case "!!int", "!!float":
		if !jsonNumber.MatchString(text) {
			v.wrong("must be a number as JSON writes it, or a text in quotes")
			return dst, false
		}
		return append(dst, text...), true
	default:
		return appendJSONText(dst, text), true
	}
}

func appendJSONText(dst []byte, text string) []byte {
	quoted, _ := json.Marshal(text) // A string can always be written.
	return append(dst, quoted...)
}
