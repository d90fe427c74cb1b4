package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// An object is a JSON object whose members keep their order. Values are objects, lists of values, texts,
// json.Numbers, booleans, nil, and raw values. Documents can be large, and few of their parts matter, so an
// object of a document is read when somebody looks into it, one level at a time.
type object struct {
	members []member
	index   map[string]int // by name; nil if there are few members
}

type member struct {
	name  string
	value any
}

// A raw value is the text of an object or a list that nobody has looked into yet. It is valid JSON.
type raw []byte

// fewMembers is the number of members up to which looking at each of them is fast.
const fewMembers = 16

// newObject returns an object with members, given as names and values.
func newObject(pairs ...any) *object {
	o := &object{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		o.set(name, pairs[i+1])
	}
	return o
}

// find returns the index of a member, or -1.
func (o *object) find(name string) int {
	if o == nil {
		return -1
	}
	if len(o.members) > fewMembers {
		if o.index == nil {
			o.index = make(map[string]int, len(o.members))
			for i, m := range o.members {
				o.index[m.name] = i
			}
		}
		if i, found := o.index[name]; found {
			return i
		}
		return -1
	}
	for i, m := range o.members {
		if m.name == name {
			return i
		}
	}
	return -1
}

// get returns the value of a member, or nil if there is none.
func (o *object) get(name string) any {
	i := o.find(name)
	if i < 0 {
		return nil
	}
	if text, ok := o.members[i].value.(raw); ok {
		o.members[i].value = open(text)
	}
	return o.members[i].value
}

// object and list return the value of a member if it is of this kind, and nil otherwise.
func (o *object) object(name string) *object {
	v, _ := o.get(name).(*object)
	return v
}

func (o *object) list(name string) []any {
	v, _ := o.get(name).([]any)
	return v
}

// text returns the value of a member that is a text, or "".
func (o *object) text(name string) string {
	v, _ := o.get(name).(string)
	return v
}

// set sets the value of a member. A new one becomes the last one.
func (o *object) set(name string, value any) {
	if i := o.find(name); i >= 0 {
		o.members[i].value = value
		return
	}
	if o.index != nil {
		o.index[name] = len(o.members)
	}
	o.members = append(o.members, member{name, value})
}

// remove removes a member, if it is there.
func (o *object) remove(name string) {
	if i := o.find(name); i >= 0 {
		o.members = append(o.members[:i:i], o.members[i+1:]...)
		o.index = nil
	}
}

// clone returns a copy that has the same values.
func (o *object) clone() *object { return &object{members: append([]member(nil), o.members...)} }

// open reads one level of a raw value. The elements of a list are opened, too.
func open(text raw) any {
	d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
	// The text was checked when the document was read, so that there are no errors here.
	first, err := d.ReadToken()
	if err != nil {
		return nil
	}
	if first.Kind() == jsontext.KindBeginArray {
		list := []any{}
		for d.PeekKind() != jsontext.KindEndArray {
			v, err := shallow(d, text)
			if err != nil {
				return nil
			}
			if inner, ok := v.(raw); ok {
				v = open(inner)
			}
			list = append(list, v)
		}
		return list
	}
	o := &object{}
	for d.PeekKind() == jsontext.KindString {
		name, err := d.ReadToken()
		if err != nil {
			return nil
		}
		m := member{name: name.String()}
		if m.value, err = shallow(d, text); err != nil {
			return nil
		}
		o.members = append(o.members, m)
	}
	return o
}

// shallow reads a value of a text. An object or a list is left raw.
func shallow(d *jsontext.Decoder, text raw) (any, error) {
	switch d.PeekKind() {
	case jsontext.KindBeginObject, jsontext.KindBeginArray:
		value, err := d.ReadValue()
		end := int(d.InputOffset())
		return text[end-len(value) : end : end], err
	default:
	}
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case jsontext.KindString:
		return token.String(), nil
	case jsontext.KindNumber:
		return json.Number(token.String()), nil
	case jsontext.KindTrue, jsontext.KindFalse:
		return token.Bool(), nil
	default:
		return nil, nil
	}
}

// appendJSON appends a value as JSON.
func appendJSON(out []byte, v any) []byte {
	switch v := v.(type) {
	case *object:
		out = append(out, '{')
		for i, m := range v.members {
			if i > 0 {
				out = append(out, ',')
			}
			out, _ = jsontext.AppendQuote(out, m.name) // The names of a document are valid UTF-8.
			out = appendJSON(append(out, ':'), m.value)
		}
		return append(out, '}')
	case []any:
		out = append(out, '[')
		for i, element := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendJSON(out, element)
		}
		return append(out, ']')
	case raw:
		value := jsontext.Value(bytes.Clone(v))
		if value.Compact() != nil {
			return append(out, "null"...)
		}
		return append(out, value...)
	case string:
		quoted, err := jsontext.AppendQuote(out, v)
		if err != nil {
			quoted, _ = jsontext.AppendQuote(out, strings.ToValidUTF8(v, "\ufffd"))
		}
		return quoted
	case json.Number:
		return append(out, v...)
	case bool:
		return strconv.AppendBool(out, v)
	default:
		return append(out, "null"...)
	}
}

// parse returns the object that a document is, in JSON or YAML.
func parse(doc []byte) (*object, error) {
	if len(doc) > MaxDocument {
		return nil, fmt.Errorf("the document has %d bytes; at most %d are allowed", len(doc), MaxDocument)
	}
	doc = bytes.TrimSpace(bytes.TrimPrefix(doc, []byte("\ufeff")))
	if len(doc) == 0 {
		return nil, errors.New("the document is empty")
	}
	if doc[0] == '{' || doc[0] == '[' {
		if err := checkJSON(doc); err != nil {
			return nil, err
		}
	} else {
		var err error
		if doc, err = fromYAML(doc); err != nil {
			return nil, err
		}
	}
	if doc[0] != '{' {
		return nil, errors.New("the document is no OpenAPI document: it must be an object")
	}
	tree, _ := open(doc).(*object)
	return tree, nil
}

// checkJSON checks that a text is strict JSON within the limits of a document.
func checkJSON(doc []byte) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(doc))
	var c count
	for {
		token, err := d.ReadToken()
		if err != nil {
			return syntaxError(doc, err)
		}
		depth := d.StackDepth()
		if depth == 0 {
			break
		}
		kind := token.Kind()
		if in, n := d.StackIndex(depth); kind == jsontext.KindEndObject || kind == jsontext.KindEndArray ||
			kind == jsontext.KindString && in == jsontext.KindBeginObject && n%2 == 1 {
			continue
		}
		if err := c.add(depth); err != nil {
			return err
		}
		if kind == jsontext.KindNumber {
			if err := checkNumber(token.String()); err != nil {
				return err
			}
		}
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("the document has something after its end")
	}
	return nil
}

// syntaxError says where a document is not strict JSON.
func syntaxError(doc []byte, err error) error {
	syntactic, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok {
		return errors.New("the document is not valid JSON: it is not complete")
	}
	line := 1 + bytes.Count(doc[:min(int(syntactic.ByteOffset), len(doc))], []byte("\n"))
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return fmt.Errorf("the document has two members of one name at %s, line %d", syntactic.JSONPointer, line)
	}
	return fmt.Errorf("the document is not valid JSON at line %d", line)
}

// checkNumber refuses numbers with which a computation would need a lot of memory.
func checkNumber(digits string) error {
	if len(digits) > 1000 {
		return errors.New("the document has a number of more than 1000 characters")
	}
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		if n, err := strconv.Atoi(digits[i+1:]); err != nil || n > 300 || n < -300 {
			return errors.New("the document has a number with an exponent beyond 300")
		}
	}
	return nil
}
