package stubs

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// An inputReader reads the parameters of the methods of a toolset.
type inputReader struct{ reader reader }

func newInputReader() inputReader { return inputReader{reader{deep: true}} }

// methodParameters returns the properties of a tool's input, the required ones first, and which other arguments the
// tool takes. The result is valid until the next call.
func (r *inputReader) methodParameters(src json.RawMessage) (properties []property, rest others) {
	properties, rest = r.reader.parameters(withoutReferences(src))
	for i := range properties {
		// Python changes such names inside of classes.
		if p := &properties[i]; strings.HasPrefix(p.param, "__") && !strings.HasSuffix(p.param, "__") {
			p.named, p.param = false, ""
		}
	}
	slices.SortStableFunc(properties, func(a, b property) int { return cmp.Compare(rank(a), rank(b)) })
	return properties, rest
}

func rank(p property) int {
	if p.required {
		return 0
	}
	return 1
}

// A resultReader reads the schemas of results.
type resultReader struct{ reader reader }

func newResultReader() resultReader { return resultReader{reader{deep: true}} }

// schema returns the schema of a result. It allows everything if src is not a schema.
func (r *resultReader) schema(src json.RawMessage) *schema {
	r.reader.reset(withoutReferences(src))
	if s := r.reader.schema(1); r.reader.ended() {
		return &s
	}
	return &schema{}
}

// members returns the properties of a result that is an object, or a list of objects. They are
// valid until the next call.
func (r *resultReader) members(src json.RawMessage) (properties []property, list bool) {
	if len(src) == 0 {
		return nil, false
	}
	src = withoutReferences(src)
	if r.schema(src).allKinds() == arrayKind {
		var array struct {
			Items json.RawMessage `json:"items"`
		}
		if json.Unmarshal(src, &array) != nil || len(array.Items) == 0 {
			return nil, false
		}
		src, list = array.Items, true
	}
	properties, _ = r.reader.parameters(src)
	for i := range properties {
		properties[i].required, properties[i].result = false, true
	}
	return properties, list
}
