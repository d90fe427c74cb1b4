package stubs

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// The limits of what is read of a schema. The rest of it is skipped.
const (
	maxProperties   = 250
	maxAlternatives = 8  // branches of one anyOf
	maxDepth        = 3  // levels of nested schemas; the schema of a property is the first
	maxName         = 64 // bytes of the name of a parameter; longer ones are left out
	maxKeys         = 20
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
	named    bool   // whether a parameter of a stub can have this name
	param    string // the name of its parameter, or empty; see setParams
	required bool   // whether calls must pass it; not if it has a default
	result   bool   // whether it is a property of a result, which no call passes
	united   bool   // whether anyOf has the schemas of several alternatives of a union
	schema
}

// A schema is the part of a JSON Schema that stubs show. Its JSON values share the memory
// of the text that they were read from.
type schema struct {
	description jsontext.Value // a string, or nil
	preset      jsontext.Value // the default, or nil
	kinds       kinds          // the allowed types, empty if the schema does not name any
	nullable    bool           // OpenAPI's way to allow null
	enum        jsontext.Value // an array that is not empty, or nil
	members     int            // the number of values in enum
	values      kinds          // the types of the values in enum
	items       *schema
	keys        []string // the names of the properties of an object, if the reader reads them
	anyOf       []schema
}

// mayBeObject reports whether s, as far as it was read, allows a JSON object.
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

// allKinds returns the types that s and its branches allow. The set is empty if s does not
// restrict them.
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

// allKeys returns the names of the properties of each object that s or one of its branches allows. If they allow no
// object but arrays of objects, it returns the names of the properties of these objects, and listed is true.
func (s *schema) allKeys() (keys [][]string, listed bool) {
	if len(s.keys) > 0 {
		return [][]string{s.keys}, false
	}
	if s.items != nil {
		if keys, _ = s.items.allKeys(); len(keys) > 0 {
			return keys, true
		}
	}
	for i := range s.anyOf {
		of, inLists := s.anyOf[i].allKeys()
		switch {
		case len(of) == 0 || len(keys) > 0 && inLists && !listed:
			continue
		case len(keys) > 0 && listed && !inLists:
			keys = nil
		}
		keys, listed = append(keys, of...), inLists
	}
	return keys, listed
}

// A reader reads schemas in one pass, with a method for each member of a schema. After the first error, which it
// keeps, all its methods return zero values.
type reader struct {
	dec        jsontext.Decoder
	src        []byte
	err        error
	properties []property // the result of readProperties; its memory is reused
	deep       bool       // whether it also reads the names of properties of nested objects
	variants   []string   // the alternatives of the union that parameters has read, for people
	declared   bool       // whether readProperties was called
	partial    bool       // whether there are properties that readProperties has not read
}

// reset makes r read src.
func (r *reader) reset(src []byte) {
	// The decoder reads a bytes.Buffer in place. Lone surrogates are valid JSON but not
	// valid UTF-8; they become U+FFFD.
	r.dec.Reset(bytes.NewBuffer(src), jsontext.AllowInvalidUTF8(true))
	r.src, r.err, r.properties, r.declared, r.partial, r.variants = src, nil, r.properties[:0], false, false, nil
}

// ended reports whether all of the source was read without an error.
func (r *reader) ended() bool {
	if r.err != nil {
		return false
	}
	_, err := r.dec.ReadToken()
	return errors.Is(err, io.EOF)
}

// parameters returns the properties that src, the parameters of a tool, declares, in their
// order in src, followed by required properties that it does not declare, and by those of the
// alternatives of a union. rest tells which other arguments the tool takes. A bad schema is no
// reason to refuse the tool: if src is not valid JSON or not the schema of an object, there are
// no properties and the tool takes everything. The result is valid until the next call.
func (r *reader) parameters(src []byte) (properties []property, rest others) {
	r.reset(src)
	var required [][]byte
	var union jsontext.Value
	isObject, elsewhere := true, false // elsewhere: further properties may be declared in other schemas
	if r.enter(jsontext.KindBeginObject) {
		for r.more() {
			switch name := string(r.text()); name {
			case "type":
				isObject = r.types()&objectKind != 0
			case "properties":
				r.readProperties()
			case "required":
				required = r.required()
			case "additionalProperties", "unevaluatedProperties":
				rest = r.others(name, rest)
			case "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas":
				branches := r.value()
				if name == "anyOf" || name == "oneOf" {
					union = branches
				}
				elsewhere = elsewhere || bytes.Contains(branches, []byte(`"properties"`)) || bytes.Contains(branches, []byte(`"$ref"`))
			case "patternProperties", "$ref", "$dynamicRef", "$recursiveRef":
				elsewhere = true
				r.skip()
			default:
				r.skip()
			}
		}
	}
	if !r.ended() || !isObject {
		return nil, anyOthers
	}
	if elsewhere || r.partial {
		rest = anyOthers
	}
	r.require(required, rest != noOthers)
	if union != nil {
		rest = r.unite(union, rest)
	}
	setParams(r.properties)
	return r.properties, rest
}

// others tells which arguments a tool takes that are not in its schema.
type others uint8

const (
	likelyOthers others = iota // the schema does not say
	anyOthers
	noOthers
)

// others reads the value of a keyword that tells which other properties there may be.
func (r *reader) others(keyword string, so others) others {
	kind := r.dec.PeekKind()
	r.skip()
	switch {
	case keyword == "additionalProperties" && kind == jsontext.KindFalse:
		return noOthers
	case so == noOthers || kind == jsontext.KindFalse:
		return so
	default:
		return anyOthers
	}
}

// require marks the properties with these names as required, unless they have a default, which the tool
// takes for a property that is left out. If add is set, it adds those that are not there.
func (r *reader) require(names [][]byte, add bool) {
	for _, name := range names {
		i := slices.IndexFunc(r.properties, func(p property) bool { return p.name == string(name) })
		switch {
		case i >= 0:
			r.properties[i].required = r.properties[i].preset == nil
		case add:
			r.properties = append(r.properties, property{name: string(name), named: isParameter(string(name)), required: true})
		}
	}
}

func (r *reader) readProperties() {
	r.declared = true
	if r.dec.PeekKind() != jsontext.KindBeginObject {
		r.partial = true
	}
	if r.enter(jsontext.KindBeginObject) {
		for r.more() {
			name := string(r.text())
			if len(r.properties) == maxProperties {
				r.partial = true
				r.skip()
				continue
			}
			r.properties = append(r.properties, property{name: name, named: isParameter(name), schema: r.schema(1)})
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
		case "properties":
			s.keys = r.keys()
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

// keys reads the names of the properties of an object within another, if r is asked for them.
func (r *reader) keys() []string {
	if !r.deep {
		r.skip()
		return nil
	}
	var names []string
	if r.enter(jsontext.KindBeginObject) {
		for r.more() {
			if name := r.text(); len(name) <= maxName && len(names) < maxKeys {
				names = append(names, string(name))
			}
			r.skip()
		}
	}
	return names
}

// enum reads the values of an enum. It also returns their number and their types.
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

// anyOf reads the branches of an anyOf. If there are too many to show, one branch that
// allows everything stands for the last ones.
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

// types reads the value of "type", which is a name or an array of names.
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

// enter reads the opening token of an object or array. If the next value is not of this
// kind, it skips that value and returns false.
func (r *reader) enter(kind jsontext.Kind) bool {
	if r.err != nil || r.dec.PeekKind() != kind {
		r.skip()
		return false
	}
	_, r.err = r.dec.ReadToken()
	return r.err == nil
}

// more reports whether the object or array has another member. If not, it reads the
// closing token.
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

// value reads the next value. The result shares the memory of the source.
func (r *reader) value() jsontext.Value {
	if r.err != nil {
		return nil
	}
	v, err := r.dec.ReadValue()
	if err != nil {
		r.err = err
		return nil
	}
	// This slice of the source stays valid; the decoder's own one does so only until its
	// next call.
	end := r.dec.InputOffset()
	return r.src[end-int64(len(v)) : end]
}

// text reads the next value. It returns the text of a string, or nil for any other value.
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
	// The only possible error is text that is not UTF-8, which has been replaced.
	text, _ := jsontext.AppendUnquote(nil, v)
	return text
}
