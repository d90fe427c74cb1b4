package stubs

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds on what is read of a schema; the rest of it is skipped.
const (
	maxProperties   = 250
	maxAlternatives = 8 // branches of one anyOf
	maxDepth        = 3 // schemas in one another, the property's own included
)

// kinds is a set of JSON types.
type kinds uint8

const (
	stringKind kinds = 1 << iota
	integerKind
	numberKind
	booleanKind
	arrayKind
	objectKind
	nullKind
)

// A property is one member of the properties of a tool's parameters.
type property struct {
	name     string
	required bool
	schema
}

// A schema is what the stubs show of a JSON Schema. Its values are parts of the
// JSON it was read from.
type schema struct {
	description jsontext.Value // a string, or nil
	preset      jsontext.Value // the default, or nil
	kinds       kinds          // the types, none if they are not said
	nullable    bool           // OpenAPI's way to allow null
	enum        jsontext.Value // an array that is not empty, or nil
	members     int            // how many values enum has
	values      kinds          // the types of these values
	items       *schema
	anyOf       []schema
}

// mayBeObject reports whether s allows a JSON object, as far as it says.
func (s *schema) mayBeObject() bool {
	if s.kinds != 0 && s.kinds&objectKind == 0 || s.values != 0 && s.values&objectKind == 0 {
		return false
	}
	for i := range s.anyOf {
		if s.anyOf[i].mayBeObject() {
			return true
		}
	}
	return s.anyOf == nil
}

// allKinds returns the types that s allows, those of its branches included, or
// none if it does not say.
func (s *schema) allKinds() kinds {
	ks := s.kinds
	if ks == 0 {
		ks = s.values
	}
	if ks == 0 {
		for i := range s.anyOf {
			branch := s.anyOf[i].allKinds()
			if branch == 0 {
				return 0
			}
			ks |= branch
		}
	}
	if ks != 0 && s.nullable {
		ks |= nullKind
	}
	return ks
}

// A reader reads schemas in one pass. The first error sticks; after it every
// method returns nothing.
type reader struct {
	dec        jsontext.Decoder
	src        []byte
	err        error
	properties []property // what readProperties has read, kept for its memory
}

// parameters returns the properties that src, the parameters of a tool, declares,
// in the order in which they were sent. It returns none if src is not valid JSON
// or not the schema of an object: a signature is a service to the program, and
// no reason to refuse the tool. The result is good until the next call.
func (r *reader) parameters(src []byte) []property {
	// The decoder reads a bytes.Buffer in place. Surrogates without a partner are
	// valid JSON, but not valid UTF-8; they become U+FFFD.
	r.dec.Reset(bytes.NewBuffer(src), jsontext.AllowInvalidUTF8(true))
	r.src, r.err, r.properties = src, nil, r.properties[:0]

	var required [][]byte
	isObject := true
	if r.enter(jsontext.KindBeginObject) {
		for r.more() {
			switch string(r.text()) {
			case "type":
				isObject = r.types()&objectKind != 0
			case "properties":
				r.readProperties()
			case "required":
				required = r.required()
			default:
				r.skip()
			}
		}
	}
	if r.err != nil || !isObject {
		return nil
	}
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil
	}
	for i := range r.properties {
		p := &r.properties[i]
		p.required = slices.ContainsFunc(required, func(name []byte) bool { return string(name) == p.name })
	}
	return r.properties
}

func (r *reader) readProperties() {
	if r.enter(jsontext.KindBeginObject) {
		for r.more() {
			name := string(r.text())
			if len(r.properties) == maxProperties {
				r.skip()
				continue
			}
			r.properties = append(r.properties, property{name: name, schema: r.schema(1)})
		}
	}
}

func (r *reader) required() [][]byte {
	var names [][]byte
	if r.enter(jsontext.KindBeginArray) {
		for r.more() {
			if name := r.text(); name != nil && len(names) < maxProperties {
				names = append(names, name)
			}
		}
	}
	return names
}

func (r *reader) schema(depth int) schema {
	var s schema
	if depth > maxDepth {
		r.skip()
		return s
	}
	if !r.enter(jsontext.KindBeginObject) {
		return s
	}
	for r.more() {
		switch string(r.text()) {
		case "description":
			if r.dec.PeekKind() == jsontext.KindString {
				s.description = r.value()
			} else {
				r.skip()
			}
		case "default":
			s.preset = r.value()
		case "type":
			s.kinds = r.types()
		case "nullable":
			s.nullable = string(r.value()) == "true"
		case "enum":
			s.enum, s.members, s.values = r.enum()
		case "const":
			s.members, s.values = 1, kindOf(r.dec.PeekKind())
			s.enum = append(append(jsontext.Value("["), r.value()...), ']')
		case "items":
			items := r.schema(depth + 1)
			s.items = &items
		case "anyOf", "oneOf":
			s.anyOf = r.anyOf(depth + 1)
		default:
			r.skip()
		}
	}
	return s
}

// enum reads the values of an enum; it also returns their number and types.
func (r *reader) enum() (values jsontext.Value, n int, of kinds) {
	if !r.enter(jsontext.KindBeginArray) {
		return nil, 0, 0
	}
	start := r.dec.InputOffset() - 1
	for r.more() {
		of |= kindOf(r.dec.PeekKind())
		r.skip()
		n++
	}
	if n == 0 {
		return nil, 0, 0
	}
	return r.src[start:r.dec.InputOffset()], n, of
}

// anyOf reads the branches. If there are too many to show, one that allows
// everything stands for the rest.
func (r *reader) anyOf(depth int) []schema {
	var branches []schema
	if r.enter(jsontext.KindBeginArray) {
		for r.more() {
			if len(branches) < maxAlternatives {
				branches = append(branches, r.schema(depth))
				continue
			}
			branches[maxAlternatives-1] = schema{}
			r.skip()
		}
	}
	return branches
}

// types reads the value of "type": a name or an array of names.
func (r *reader) types() kinds {
	if r.dec.PeekKind() == jsontext.KindString {
		return kindNamed(r.text())
	}
	var ks kinds
	if r.enter(jsontext.KindBeginArray) {
		for r.more() {
			ks |= kindNamed(r.text())
		}
	}
	return ks
}

func kindNamed(name []byte) kinds {
	for _, t := range types {
		if t.json == string(name) {
			return t.kind
		}
	}
	return 0
}

func kindOf(k jsontext.Kind) kinds {
	switch k {
	case jsontext.KindString:
		return stringKind
	case jsontext.KindNumber:
		return numberKind
	case jsontext.KindTrue, jsontext.KindFalse:
		return booleanKind
	case jsontext.KindBeginArray:
		return arrayKind
	case jsontext.KindBeginObject:
		return objectKind
	case jsontext.KindNull:
		return nullKind
	default:
		return 0
	}
}

// enter reads the first token of an object or array. If the next value is not of
// that kind, it skips the value and returns false.
func (r *reader) enter(kind jsontext.Kind) bool {
	if r.err != nil || r.dec.PeekKind() != kind {
		r.skip()
		return false
	}
	_, r.err = r.dec.ReadToken()
	return r.err == nil
}

// more reports whether the object or array has another member; if not, it reads
// the last token.
func (r *reader) more() bool {
	if r.err != nil {
		return false
	}
	switch r.dec.PeekKind() {
	case jsontext.KindEndObject, jsontext.KindEndArray, jsontext.KindInvalid:
		_, r.err = r.dec.ReadToken()
		return false
	default:
		return true
	}
}

// value reads a value.
func (r *reader) value() jsontext.Value {
	if r.err != nil {
		return nil
	}
	v, err := r.dec.ReadValue()
	if err != nil {
		r.err = err
		return nil
	}
	// The decoder's own slice is good only until its next call.
	end := r.dec.InputOffset()
	return r.src[end-int64(len(v)) : end]
}

// text reads a value and returns its text if it is a string, otherwise nil.
func (r *reader) text() []byte {
	v := r.value()
	if v.Kind() != jsontext.KindString {
		return nil
	}
	return unquote(v)
}

func (r *reader) skip() {
	if r.err == nil {
		r.err = r.dec.SkipValue()
	}
}

// unquote returns the text of v, which is a valid JSON string.
func unquote(v jsontext.Value) []byte {
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1]
	}
	// The only error left is text that is not UTF-8, which has been replaced.
	text, _ := jsontext.AppendUnquote(nil, v)
	return text
}
