// Package referencetest compares answers of the server with its reference. Unlike the document that
// clients get, it takes no member of an answer that the document does not describe.
package referencetest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"fermata/api/reference"
)

// file is where what is missing has to be added.
const file = "api/reference/openapi.yaml"

// here is the address of the document within this package.
const here = "openapi.json"

// A Document is the reference in a form in which answers can be compared with it.
type Document struct {
	root  map[string]any
	paths map[string]any

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema // by the pointer to them
}

// Load returns the reference.
func Load() (*Document, error) {
	text, err := reference.Document()
	if err != nil {
		return nil, err
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	root, _ := parsed.(map[string]any)
	paths, _ := root["paths"].(map[string]any)
	tighten(parsed)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource(here, parsed); err != nil {
		return nil, err
	}
	return &Document{root: root, paths: paths, compiler: c, compiled: map[string]*jsonschema.Schema{}}, nil
}

// tighten makes all objects with known members refuse unknown ones.
func tighten(v any) {
	switch v := v.(type) {
	case map[string]any:
		_, hasMembers := v["properties"].(map[string]any)
		_, hasType := v["type"]
		if _, open := v["additionalProperties"]; hasMembers && hasType && !open {
			v["additionalProperties"] = false
		}
		for _, member := range v {
			tighten(member)
		}
	case []any:
		for _, entry := range v {
			tighten(entry)
		}
	}
}

// Routes returns the documented routes, as "GET /files/{session}".
func (d *Document) Routes() []string {
	var all []string
	for path, item := range d.paths {
		item, _ := item.(map[string]any)
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
			if item[strings.ToLower(method)] != nil {
				all = append(all, method+" "+path)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Check returns how an answer in JSON differs from the reference. The path is that of the request.
func (d *Document) Check(method, path string, status int, body []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s %s %d: %w", method, path, status, err)
	}
	route, pointer := d.find(method, path, status)
	what := fmt.Sprintf("%s %s, status %d", method, cmp.Or(route, path), status)
	if pointer == "" {
		return fmt.Errorf("%s is not described: add it to %s", what, file)
	}
	schema, err := d.schema(pointer)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("%s: %s: mend the answer, or add it to %s. The answer was %.600s", what, explain(err), file, body)
	}
	return nil
}

// CheckValue returns how a value differs from the schema at a pointer into the document.
func (d *Document) CheckValue(pointer string, value any) error {
	schema, err := d.schema(pointer)
	if err != nil {
		return err
	}
	if err := schema.Validate(value); err != nil {
		return errors.New(explain(err))
	}
	return nil
}

// find returns the route of a request, and the pointer to the schema of its answer; the pointer is empty
// if there is none.
func (d *Document) find(method, path string, status int) (route, pointer string) {
	path, _, _ = strings.Cut(path, "?")
	if rest, versioned := strings.CutPrefix(path, "/v1/"); versioned {
		path = "/" + rest
	}
	route = d.match(path)
	item, _ := d.paths[route].(map[string]any)
	if method == http.MethodHead {
		method = http.MethodGet
	}
	operation, known := item[strings.ToLower(method)].(map[string]any)
	if !known {
		// What no route takes gets an error, in the form of its path.
		if route == "/exec/programmatic" {
			return route, "/components/schemas/ProgramError"
		}
		return route, "/components/schemas/Error"
	}
	responses, _ := operation["responses"].(map[string]any)
	response, known := responses[strconv.Itoa(status)].(map[string]any)
	if !known {
		return route, ""
	}
	if ref, isRef := response["$ref"].(string); isRef {
		return route, strings.TrimPrefix(ref, "#") + "/content/application~1json/schema"
	}
	return route, strings.Join([]string{"/paths", escape(route), strings.ToLower(method), "responses", strconv.Itoa(status), "content/application~1json/schema"}, "/")
}

// match returns the documented path that a path is one of, empty if there is none.
func (d *Document) match(path string) string {
	parts := strings.Split(path, "/")
	for known := range d.paths {
		names := strings.Split(known, "/")
		if slices.EqualFunc(parts, names, func(part, name string) bool {
			return part == name || strings.HasPrefix(name, "{") && part != ""
		}) {
			return known
		}
	}
	return ""
}

func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(name)
}

func (d *Document) schema(pointer string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.compiled[pointer]; s != nil {
		return s, nil
	}
	s, err := d.compiler.Compile(here + "#" + pointer)
	if err != nil {
		return nil, fmt.Errorf("%s has no usable schema at %s: %w", file, pointer, err)
	}
	d.compiled[pointer] = s
	return s, nil
}

// explain returns the causes of an error in one line, each with the place in the answer.
func explain(err error) string {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err.Error()
	}
	printer := message.NewPrinter(language.English)
	var causes []string
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			walk(cause)
		}
		if len(e.Causes) == 0 {
			place := "/" + strings.Join(e.InstanceLocation, "/")
			causes = append(causes, place+": "+e.ErrorKind.LocalizedString(printer))
		}
	}
	walk(invalid)
	slices.Sort(causes)
	return strings.Join(slices.Compact(causes), "; ")
}
