// Package openapi makes operations of HTTP tools out of OpenAPI documents 3.0 and 3.1.
//
// A document is not trusted. Nothing is loaded for it: each $ref must lead to the document itself. An
// operation that cannot be called as the document describes it is left out, with a note that says why.
package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"fermata/engine/tools/httptool"
)

// The limits of a document.
const (
	MaxDocument    = 16 << 20 // bytes
	MaxOperations  = 500      // that become tools
	MaxDescription = 4 << 10  // bytes

	maxDepth  = 200       // levels
	maxValues = 2_000_000 // of all levels
	maxNotes  = 1000
)

// A Document has the parts of an OpenAPI document that matter to tools.
type Document struct {
	// BaseURL is the URL to which the paths are relative, or empty if the document has none.
	BaseURL string
	// Operations are in the order of their paths.
	Operations []httptool.Operation
	// Notes are sentences for the operator that say what was left out, and why.
	Notes []string
}

// Read reads a document, which is JSON or YAML. If only is not nil, it has the ids of the operations
// that become tools, and it is an error if one of them is missing or cannot be a tool.
func Read(doc []byte, only []string) (*Document, error) {
	tree, err := parse(doc)
	if err != nil {
		return nil, err
	}
	if err := checkVersion(tree); err != nil {
		return nil, err
	}
	if err := checkRefs(tree, ""); err != nil {
		return nil, err
	}
	spec, err := load(tree)
	if err != nil {
		return nil, err
	}
	r := &reader{tree: tree, spec: spec, document: &Document{BaseURL: baseURL(spec.Servers)}}
	if err := r.read(only); err != nil {
		return nil, err
	}
	return r.document, nil
}

// checkVersion refuses documents of other versions.
func checkVersion(tree map[string]any) error {
	if _, found := tree["swagger"]; found {
		return errors.New("the document is Swagger 2.0; convert it to OpenAPI 3.0 or 3.1")
	}
	version, ok := tree["openapi"].(string)
	switch {
	case !ok:
		return errors.New("the document is no OpenAPI document: it has no member openapi with the version")
	case !strings.HasPrefix(version, "3.0") && !strings.HasPrefix(version, "3.1"):
		return fmt.Errorf("the document is OpenAPI %.20q; 3.0 and 3.1 can be read", version)
	}
	return nil
}

// checkRefs returns an error if a reference leads out of the document.
func checkRefs(v any, place string) error {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && !strings.HasPrefix(ref, "#") {
			return fmt.Errorf("the document refers to something outside of itself, and nothing is loaded: %.200q at %s", ref, place)
		}
		for name, member := range v {
			if isData(name) {
				continue
			}
			if err := checkRefs(member, place+"/"+pointerEscape(name)); err != nil {
				return err
			}
		}
	case []any:
		for i, element := range v {
			if err := checkRefs(element, fmt.Sprintf("%s/%d", place, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// isData reports whether a member has data of the API, in which $ref is only a name.
func isData(name string) bool {
	switch name {
	case "example", "examples", "default", "enum", "const":
		return true
	}
	return strings.HasPrefix(name, "x-")
}

// load reads a document with the library. It does not validate the document, since the documents of many
// well-known services are not valid in places that do not matter.
func load(tree map[string]any) (spec *openapi3.T, err error) {
	raw, err := json.Marshal(tree)
	if err != nil {
		return nil, errors.New("the document cannot be read")
	}
	defer func() {
		if recover() != nil { // No document may crash the server.
			spec, err = nil, errors.New("the document cannot be read: it is not a valid OpenAPI document")
		}
	}()
	loader := openapi3.NewLoader()
	loader.IsExternalRefsAllowed = false
	if spec, err = loader.LoadFromData(raw); err != nil {
		return nil, errors.New("the document is not a valid OpenAPI document: " + cutText(plainly(err.Error()), 500))
	}
	return spec, nil
}

// wrongKind matches what the library says of a value of the wrong kind, among other things.
var wrongKind = regexp.MustCompile(`json: cannot unmarshal (\w+) into (?:field (\S+) of type|value of type openapi3\.(\w+))`)

// plainly returns an error of the library in words for people.
func plainly(text string) string {
	found := wrongKind.FindStringSubmatch(text)
	if found == nil {
		return text
	}
	place := found[2]
	if place == "" {
		place = "its " + found[3]
	}
	return fmt.Sprintf("a JSON %s stands in the place of %s", found[1], strings.TrimPrefix(place, "T."))
}

// baseURL returns the first server with a complete URL. Its variables have their defaults.
func baseURL(servers openapi3.Servers) string {
	for _, server := range servers {
		text := server.URL
		for name, variable := range server.Variables {
			if variable != nil {
				text = strings.ReplaceAll(text, "{"+name+"}", variable.Default)
			}
		}
		u, err := url.Parse(text)
		if err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && u.Fragment == "" && !strings.ContainsAny(text, "{}") {
			return text
		}
	}
	return ""
}

// note adds a note for the operator.
func (r *reader) note(format string, args ...any) {
	if len(r.document.Notes) < maxNotes {
		r.document.Notes = append(r.document.Notes, fmt.Sprintf(format, args...))
	}
}
