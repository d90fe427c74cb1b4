package stubs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Toolset is a set of tools that programs import: a module with one class.
type Toolset struct {
	// Key names the module, and begins the names of the shell functions.
	Key string
	// Class is the name of the class; see ClassName.
	Class string
	// Description is for readers of the program. It may be any text.
	Description string
	// Tools are the tools, which all have different methods.
	Tools []Tool
}

const (
	// maxModule is the maximum size of the source of a toolset, in bytes.
	maxModule = 2 << 20
	// maxMethod is the maximum length of the name of a method, which is a part of documentation for models.
	maxMethod = 128
)

var (
	toolsetKey = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	className  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)
	notWords   = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

// IsToolsetKey reports whether a module can have this name: a lower-case letter, then at most 63 lower-case
// letters, digits and underscores. It must not be a keyword.
func IsToolsetKey(key string) bool { return toolsetKey.MatchString(key) && !IsKeyword(key) }

// IsClassName reports whether the class of a toolset can have this name: a letter, then at most 63 letters,
// digits and underscores. It must not be a keyword.
func IsClassName(name string) bool { return className.MatchString(name) && !IsKeyword(name) }

// ClassName returns the name of a toolset's class: the words of its title in CamelCase. If that is not a valid
// class name, it uses the words of the key. If that is not valid either, it returns "".
func ClassName(title, key string) string {
	for _, text := range []string{title, key} {
		if name := camelCase(text); IsClassName(name) {
			return name
		}
	}
	return ""
}

// camelCase joins the words of a text. Each begins with a capital letter.
func camelCase(text string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(notWords.ReplaceAllString(text, " "), " ") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// Method returns the name of the method of the tool called name. It is the identifier of the tool, with tool in
// front if the identifier begins with an underscore, and with _tool at the end if each class has a member of that
// name. So no method is private, special or changed by Python, and names that begin with an underscore are free
// for the module itself. Method returns "" if the tool has no method, because its name has no character that is
// allowed in an identifier, or more than 128.
func Method(name string) string {
	id := Identifier(name)
	switch {
	case strings.HasPrefix(id, "_"):
		id = "tool" + id
	case id == "aio", id == "mro", id == "staticmethod":
		id += "_tool"
	}
	if len(id) > maxMethod {
		return ""
	}
	return id
}

// Methods returns the method of each tool, or "" for a tool that has none. If two tools have the
// same method, whether or not they have the same name, it returns a *CollisionError.
func Methods(tools []Tool) ([]string, error) {
	methods := make([]string, len(tools))
	first := make(map[string]int, len(tools))
	for i, t := range tools {
		id := Method(t.Name)
		if id == "" {
			continue
		}
		if j, twice := first[id]; twice {
			return nil, &CollisionError{First: tools[j].Name, Second: t.Name, Identifier: id}
		}
		methods[i], first[id] = id, i
	}
	return methods, nil
}

// methods checks the toolset's own names and returns the methods of its tools.
func (t *Toolset) methods() ([]string, error) {
	if !IsToolsetKey(t.Key) {
		return nil, fmt.Errorf("the toolset's key %.80q is not the name of a module: a small letter, then at most 63 small letters, digits and underscores, and no keyword of Python", t.Key)
	}
	if !IsClassName(t.Class) {
		return nil, fmt.Errorf("the class %.80q of the toolset %s is not the name of a class: a letter, then at most 63 letters, digits and underscores, and no keyword of Python", t.Class, t.Key)
	}
	methods, err := Methods(t.Tools)
	if err != nil {
		return nil, fmt.Errorf("toolset %s: %w", t.Key, err)
	}
	return methods, nil
}

// BashModule returns shell source that defines a function for every tool that has a method:
//
//	weather_current() { __fermata_call weather.current "$@"; }
//
// It contains only keys and methods, and so no text from the source of the tools. If two toolsets would have a
// function of the same name, BashModule returns a *BashCollisionError.
func BashModule(toolsets ...Toolset) (string, error) {
	var source strings.Builder
	tools := map[string]string{}
	for _, t := range toolsets {
		methods, err := t.methods()
		if err != nil {
			return "", err
		}
		for _, method := range methods {
			if method == "" {
				continue
			}
			id, tool := bashFunction(t.Key, method), t.Key+"."+method
			if other, twice := tools[id]; twice {
				return "", &BashCollisionError{CollisionError{First: other, Second: tool, Identifier: id}}
			}
			tools[id] = tool
			define(&source, id, tool)
		}
	}
	return source.String(), nil
}

// bashFunction returns the name of the shell function of a method. It cannot be a name that the shell needs, since
// those have no underscore or begin with one.
func bashFunction(key, method string) string { return key + "_" + method }

// typeNames are the names in annotations that a method or class can hide.
var typeNames = func() []string {
	names := []string{"Any", "Literal", "dict", "list"}
	for _, t := range types {
		if t.python != "" && !strings.ContainsRune(t.python, '[') {
			names = append(names, t.python)
		}
	}
	return names
}()

// hiddenTypes returns the names of types that are also the name of a method or of the class.
func hiddenTypes(class string, methods []string) []string {
	var hidden []string
	for _, name := range typeNames {
		if name == class || slices.Contains(methods, name) {
			hidden = append(hidden, name)
		}
	}
	return hidden
}

// renamed puts an underscore in front of each hidden name of a type in an annotation.
func renamed(annotation string, hidden []string) string {
	var out []byte
	for i := 0; i < len(annotation); {
		end := i + 1
		switch c := annotation[i]; {
		case c == '"': // Python's literals end like those of JSON.
			end = i + stringLen([]byte(annotation[i:]))
		case isWord(rune(c)):
			for end < len(annotation) && isWord(rune(annotation[end])) {
				end++
			}
			if slices.Contains(hidden, annotation[i:end]) {
				out = append(out, '_')
			}
		}
		out = append(out, annotation[i:end]...)
		i = end
	}
	return string(out)
}
