package stubs

import (
	"bytes"
	"fmt"
)

// maxClassDoc is the maximum length of the docstring of a class, in bytes.
const maxClassDoc = 4 << 10

// PythonModule returns the source of the module that programs import for a toolset. It is an error if the key or
// the class is not a valid name, if two tools have the same method, or if the source would have more than 2 MiB.
//
// The source needs Python 3.11, and is ASCII except for names of parameters and methods. Every tool that has a method is a blocking method of the class, and
// an async method of its member aio. The methods are static, so that no instance is needed and parameters may
// have the name cls. The source looks like this:
//
//	class Weather:
//	    """Current weather and forecasts."""
//
//	    @staticmethod
//	    @_tool("weather", "get-current", False, {"user-id": True})
//	    def get_current(city: str, units: Literal["c", "f"] = "c", **extra: Any) -> dict[str, Any]:
//	        """Weather now.
//
//	        Args:
//	            city: string, required.
//	        """
//
//	    class aio:
//	        """The same tools, to be awaited."""
//
//	        @staticmethod
//	        @_tool("weather", "get-current", False, {"user-id": True})
//	        async def get_current(city: str, units: Literal["c", "f"] = "c", **extra: Any) -> dict[str, Any]:
//	            """Weather.get_current, to be awaited."""
//
// The module imports the decorator _tool from its package. Its arguments are the toolset's key and the arguments
// of tool in the stubs of plain tools (see Python), without the identifier, which is the name of the function.
// It returns the function that is called instead, which is async if the decorated one is. As in those stubs, the
// functions have no body, and defaults are never sent.
func PythonModule(t Toolset) (string, error) {
	methods, err := t.methods()
	if err != nil {
		return "", err
	}
	w := moduleWriter{toolset: t, methods: methods, inputs: newInputReader(), results: newResultReader()}
	w.hidden = hiddenTypes(t.Class, methods)
	w.head()
	w.class("    ", "def ", w.describe)
	w.text("\n    class aio:\n        \"\"\"The same tools, to be awaited.\"\"\"\n")
	w.class("        ", "async def ", func(_ Tool, method string) {
		w.doc = append(w.doc[:0], t.Class+"."+method+", to be awaited."...)
	})
	if len(w.out) > maxModule {
		return "", fmt.Errorf("the source of the toolset %s would have more than %d bytes; leave out tools, or shorten their schemas", t.Key, maxModule)
	}
	return string(w.out), nil
}

// A moduleWriter writes the module of a toolset.
type moduleWriter struct {
	writer
	toolset Toolset
	methods []string
	inputs  inputReader
	results resultReader
	// properties are the properties of the current tool's input.
	properties []property
}

func (w *moduleWriter) text(s string) { w.out = append(w.out, s...) }

// head writes everything before the first method.
func (w *moduleWriter) head() {
	class := w.toolset.Class
	w.text(`"""The toolset ` + w.toolset.Key + ": its tools are the methods of " + class + ".\"\"\"\n\n" +
		"from typing import Any, Literal\n\nfrom . import _tool\n\n__all__ = [\"" + class + "\"]\n")
	if w.hidden != nil {
		w.text("\n# The class hides these names.\n")
		for _, name := range w.hidden {
			w.text("_" + name + " = " + name + "\n")
		}
	}
	w.text("\n\nclass " + class + ":\n    ")
	description := w.toolset.Description
	w.doc = cutText(append(w.doc[:0], description[:min(len(description), maxClassDoc+1)]...), maxClassDoc)
	if len(w.doc) == 0 {
		w.doc = append(w.doc, "The tools of the toolset "+w.toolset.Key+"."...)
	}
	w.docstring("    ")
}

// class writes a method for each tool. The function doc makes the docstring, in w.doc.
func (w *moduleWriter) class(indent, def string, doc func(Tool, string)) {
	for i, t := range w.toolset.Tools {
		if w.methods[i] == "" || len(w.out) > maxModule {
			continue
		}
		properties, rest := w.inputs.methodParameters(t.Parameters)
		w.properties = properties
		w.text("\n" + indent + "@staticmethod\n" + indent + "@_tool(\"" + w.toolset.Key + "\", ")
		w.out = appendString(w.out, []byte(t.Name))
		w.traits(properties, rest)
		w.text(")\n" + indent + def + w.methods[i] + "(")
		w.parameters(properties, rest)
		w.text(") -> " + w.annotation(w.results.schema(t.Output)) + ":\n" + indent + "    ")
		doc(t, w.methods[i])
		w.docstring(indent + "    ")
	}
}

// describe makes the docstring of a tool, from the properties that were read.
func (w *moduleWriter) describe(t Tool, _ string) {
	w.doc = appendDoc(w.doc[:0], t.Description, w.properties, w.inputs.reader.variants)
	if properties, list := w.results.members(t.Output); list {
		w.doc = appendSection(w.doc, "Returns a list of dicts with:", properties)
	} else {
		w.doc = appendSection(w.doc, "Returns a dict with:", properties)
	}
	w.doc = cutText(openSection(w.doc, t.Description), maxDoc)
}

// docstring writes w.doc, with its lines indented in the way that Python expects in docstrings.
func (w *moduleWriter) docstring(indent string) {
	w.text(`"""`)
	rest, several := w.doc, false
	for {
		line, after, more := bytes.Cut(rest, []byte("\n"))
		w.line(line)
		if !more {
			break
		}
		w.text("\n")
		if len(after) > 0 && after[0] != '\n' {
			w.text(indent)
		}
		rest, several = after, true
	}
	if several {
		w.text("\n" + indent)
	}
	w.text("\"\"\"\n")
}

// line writes a line of a docstring. A quotation mark within the line is escaped only if another one follows.
func (w *moduleWriter) line(line []byte) {
	written := 0
	for i := 1; i+1 < len(line); i++ {
		if line[i] == '"' && line[i+1] != '"' {
			w.out = append(appendEscaped(w.out, line[written:i]), '"')
			written = i + 1
		}
	}
	w.out = appendEscaped(w.out, line[written:])
}
