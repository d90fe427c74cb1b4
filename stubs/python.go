package stubs

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// The limits of what a stub takes from a schema. What exceeds them is left out.
const (
	maxDefault    = 120 // bytes of JSON in a default, which can nest 60 lists
	maxLiteral    = 400 // bytes of JSON in the values of a Literal
	maxLiterals   = 12  // values of a Literal
	maxAnnotation = 600 // bytes of an annotation
)

// A CollisionError means that two tools would have the same name in the program.
type CollisionError struct {
	First, Second string
	Identifier    string
}

func (e *CollisionError) Error() string {
	return fmt.Sprintf("Tool names %q and %q normalize to the same identifier %q", e.First, e.Second, e.Identifier)
}

// Python returns Python source that defines a stub for every tool that can have one. If
// several tools have the same name, the last one counts. If tools with different names
// have the same identifier, Python returns a *CollisionError. A tool gets no stub if its
// identifier is a global in which the interpreter keeps its own state.
//
// The source needs Python 3.11, is ASCII except for names of parameters, and uses the names
// tool, Any and Literal besides the builtins. A stub looks like this:
//
//	@tool("get-weather", "get_weather", False, {"user-id": True}, names={"user_id": "user-id"})
//	async def _(city: str, units: Literal["c", "f"] = "c", *, user_id: str, **extra: Any) -> Any:
//	    "Current weather for a city.\n\nArgs:\n    city: string, required.\n..."
//
// The arguments of tool are the tool's name, its identifier, whether the first parameter
// may itself be an object, and, if there are any, the properties whose names cannot be
// parameters, each with whether it is required. Further arguments are there if they are needed:
// names has the parameters that are spelled in another way than their property, anything is True if the
// schema says that the tool takes more than its properties, and also is a second identifier.
//
// A parameter is required if it has no default. A required one behind others with defaults, and what
// follows it, can only go by keyword for Python; for the program it can go by position as well,
// except for those that stand for properties whose names cannot be parameters. Without
// a double-star parameter, the tool takes no arguments but these. The function has no body
// but its docstring, and defaults are never sent.
func Python(tools []Tool) (string, error) {
	names, err := pythonNames(tools)
	if err != nil {
		return "", err
	}
	size := 0
	for _, t := range tools {
		size += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	w := writer{out: make([]byte, 0, size), reader: reader{deep: true}}
	for i, t := range tools {
		if names[i].first != "" {
			w.stub(t, names[i])
		}
	}
	return string(w.out), nil
}

// A writer writes stubs, one after the other.
type writer struct {
	out    []byte
	doc    []byte // the docstring of the current stub; its memory is reused
	reader reader
	hidden []string // names of types that are hidden at the place of the stubs
}

func (w *writer) stub(t Tool, its names) {
	properties, rest := w.reader.parameters(withoutReferences(t.Parameters))
	w.out = appendString(append(w.out, "@tool("...), []byte(t.Name))
	w.out = appendString(append(w.out, ", "...), []byte(its.first))
	w.traits(properties, rest)
	if its.second != "" {
		w.out = appendString(append(w.out, ", also="...), []byte(its.second))
	}
	w.out = append(w.out, ")\nasync def _("...)
	w.parameters(properties, rest)
	w.out = append(w.out, ") -> Any:\n    "...)
	w.doc = appendDoc(w.doc[:0], t.Description, properties, w.reader.variants)
	w.doc = cutText(openSection(w.doc, t.Description), maxDoc)
	w.out = appendString(w.out, w.doc)
	w.out = append(w.out, "\n\n"...)
}

// traits writes the last arguments of tool: whether the first parameter may be an object, the
// properties that cannot be parameters, the other names of parameters, and whether the tool takes anything.
func (w *writer) traits(properties []property, rest others) {
	first := slices.IndexFunc(properties, func(p property) bool { return p.named })
	if first >= 0 && properties[first].mayBeObject() {
		w.out = append(w.out, ", True"...)
	} else {
		w.out = append(w.out, ", False"...)
	}
	opening, closing := ", {", ""
	for i := range properties {
		p := &properties[i]
		if p.named {
			continue
		}
		w.out = appendString(append(w.out, opening...), []byte(p.name))
		if p.required {
			w.out = append(w.out, ": True"...)
		} else {
			w.out = append(w.out, ": False"...)
		}
		opening, closing = ", ", "}"
	}
	w.out = append(w.out, closing...)
	opening, closing = ", names={", ""
	for i := range properties {
		p := &properties[i]
		if p.param == p.name || p.param == "" {
			continue
		}
		w.out = appendString(append(w.out, opening...), []byte(p.param))
		w.out = appendString(append(w.out, ": "...), []byte(p.name))
		opening, closing = ", ", "}"
	}
	w.out = append(w.out, closing...)
	if rest == anyOthers && len(properties) > 0 {
		w.out = append(w.out, ", anything=True"...)
	}
}

// parameters writes the parameters of a function, and a double-star parameter unless the tool is
// closed.
func (w *writer) parameters(properties []property, rest others) {
	defaults, keywords := false, false // whether a parameter has a default, and whether all that follow go by keyword
	for i := range properties {
		p := &properties[i]
		if !p.named {
			continue
		}
		if p.required && defaults && !keywords {
			w.out = append(w.out, "*, "...)
			keywords = true
		}
		defaults = defaults || !p.required
		w.parameter(p)
	}
	for i := range properties {
		p := &properties[i]
		if p.named || p.param == "" {
			continue
		}
		if !keywords {
			w.out = append(w.out, "*, "...)
			keywords = true
		}
		w.parameter(p)
	}
	if rest == noOthers {
		w.out = bytes.TrimSuffix(w.out, []byte(", "))
		return
	}
	w.out = append(w.out, "**"...)
	w.out = append(w.out, extraName(properties)...)
	w.out = append(append(w.out, ": "...), w.annotation(&schema{})...)
}

// parameter writes a parameter and a comma.
func (w *writer) parameter(p *property) {
	w.out = append(append(w.out, p.param...), ": "...)
	w.out = append(w.out, w.annotation(&p.schema)...)
	switch {
	case p.required:
	case p.preset != nil && len(p.preset) <= maxDefault:
		w.out = appendLiteral(append(w.out, " = "...), p.preset, appendString)
	default:
		w.out = append(w.out, " = None"...)
	}
	w.out = append(w.out, ", "...)
}

// annotation returns s as a Python type. In a class that hides the name of a type, the type has
// another name.
func (w *writer) annotation(s *schema) string {
	if w.hidden == nil {
		return s.annotation()
	}
	return renamed(s.annotation(), w.hidden)
}

// extraName returns a name for the double-star parameter, one that no property has.
func extraName(properties []property) string {
	name := "extra"
	for slices.ContainsFunc(properties, func(p property) bool { return p.name == name || p.param == name }) {
		name += "_"
	}
	return name
}

// types are the types of JSON Schema in the order in which stubs show them. Arrays and null
// have no Python type here, because theirs depends on the rest of the schema.
var types = [...]struct {
	kind         kinds
	json, python string
}{
	{stringKind, "string", "str"},
	{integerKind, "integer", "int"},
	{numberKind, "number", "float"},
	{booleanKind, "boolean", "bool"},
	{arrayKind, "array", ""},
	{objectKind, "object", "dict[str, Any]"},
	{nullKind, "null", ""},
}

// annotation returns s as a Python type.
func (s *schema) annotation() string {
	if s.enum == nil && !s.nullable {
		for _, t := range types { // the shortcut for most schemas, which needs no memory
			if s.kinds == t.kind && t.python != "" {
				return t.python
			}
		}
	}
	alternatives, null := s.alternatives(make([]string, 0, 4))
	text := strings.Join(alternatives, " | ")
	switch {
	case slices.Contains(alternatives, "Any") || len(text) > maxAnnotation:
		return "Any"
	case !null:
		return text
	case text == "":
		return "None"
	default:
		return text + " | None"
	}
}

// alternatives appends to found the Python types that s allows, without duplicates. It
// reports None apart, since None goes last and "None | None" is an error in Python.
func (s *schema) alternatives(found []string) (_ []string, null bool) {
	add := func(python string) {
		if !slices.Contains(found, python) {
			found = append(found, python)
		}
	}
	null = s.nullable || s.kinds&nullKind != 0
	switch {
	case s.members > 0 && s.members <= maxLiterals && len(s.enum) <= maxLiteral && s.values&(arrayKind|objectKind) == 0:
		// The brackets of the JSON array become those of Literal.
		add(string(appendLiteral([]byte("Literal"), s.enum, appendString)))
		return found, false
	case s.kinds != 0:
		for _, t := range types {
			switch {
			case s.kinds&t.kind == 0:
			case t.python != "":
				add(t.python)
			case t.kind == arrayKind && s.items == nil:
				add("list[Any]")
			case t.kind == arrayKind:
				add("list[" + s.items.annotation() + "]")
			}
		}
	case s.anyOf != nil:
		for i := range s.anyOf {
			var branch bool
			found, branch = s.anyOf[i].alternatives(found)
			null = null || branch
		}
	default:
		add("Any")
	}
	return found, null
}
