package artifact

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// replaced returns an object in which a member has another value. The member stands where the last one with
// this name stood, or at the end if there was none. Everything else keeps its bytes and its order.
func replaced(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	list := membersOf(object)
	at := -1
	for i, m := range list {
		if m.name == name {
			at = i
		}
	}
	if at < 0 {
		quoted, err := json.Marshal(name)
		if err != nil {
			panic(err) // Every string can be encoded.
		}
		at, list = len(list), append(list, member{name: name, quoted: quoted})
	}
	list[at].value = jsontext.Value(value)
	return join(list)
}

// without returns an object without the members that have these names.
func without(object json.RawMessage, names ...string) json.RawMessage {
	return join(slices.DeleteFunc(membersOf(object), func(m member) bool { return slices.Contains(names, m.name) }))
}

// A member is a member of an object: its name, its name as it is written, and its value.
type member struct {
	name          string
	quoted, value jsontext.Value
}

// membersOf returns the members of an object, which is valid JSON.
func membersOf(object json.RawMessage) (list []member) {
	d := jsontext.NewDecoder(bytes.NewReader(object), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadToken(); err != nil {
		return nil
	}
	for d.PeekKind() != jsontext.KindEndObject {
		quoted, err := d.ReadValue()
		if err != nil {
			return list
		}
		m := member{quoted: quoted.Clone()}
		text, _ := jsontext.AppendUnquote(nil, quoted) // Half a surrogate pair is replaced.
		m.name = string(text)
		value, err := d.ReadValue()
		if err != nil {
			return list
		}
		m.value = value.Clone()
		list = append(list, m)
	}
	return list
}

func join(list []member) json.RawMessage {
	parts := make([][]byte, len(list))
	for i, m := range list {
		parts[i] = append(append(m.quoted, ':'), m.value...)
	}
	return append(append([]byte{'{'}, bytes.Join(parts, []byte{','})...), '}')
}
