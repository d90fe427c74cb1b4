package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// An object is a JSON object with its members in the order of their names, so that each check of an input
// finds the same failure first.
type object struct {
	members []member
}

type member struct {
	name  string
	value any
}

// has reports whether the object has a member with this name.
func (o *object) has(name string) bool {
	_, found := slices.BinarySearchFunc(o.members, name, func(m member, name string) int { return strings.Compare(m.name, name) })
	return found
}

// parse reads strict JSON that checkText has checked. A value is nil, a bool, a string, a json.Number, a []any
// or an *object.
func parse(raw []byte) (any, error) {
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	v, err := parseValue(d)
	if err != nil {
		return nil, syntaxError(err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, syntaxError(err)
	}
	return v, nil
}

func parseValue(d *jsontext.Decoder) (any, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '{':
		o := &object{}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			text := name.String()
			v, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			o.members = append(o.members, member{text, v})
		}
		byName := func(a, b member) int { return strings.Compare(a.name, b.name) }
		if !slices.IsSortedFunc(o.members, byName) {
			slices.SortFunc(o.members, byName)
		}
		_, err := d.ReadToken()
		return o, err
	case '[':
		list := []any{}
		for d.PeekKind() != ']' {
			v, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.ReadToken()
		return list, err
	case '"':
		return token.String(), nil
	case '0':
		return json.Number(token.String()), nil
	case 't', 'f':
		return token.Bool(), nil
	default:
		return nil, nil
	}
}
