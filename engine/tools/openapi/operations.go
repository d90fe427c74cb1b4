package openapi

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"fermata/engine/tools/httptool"
)

// A reader makes operations from one document.
type reader struct {
	tree     map[string]any
	spec     *openapi3.T
	document *Document
}

// An endpoint is an operation as the document has it.
type endpoint struct {
	id, name, method, path string
	item                   *openapi3.PathItem
	operation              *openapi3.Operation
}

// String tells the operator which operation it is.
func (e endpoint) String() string {
	if e.id == "" {
		return e.method + " " + e.path
	}
	return e.id
}

// methods are the HTTP methods of operations that can be tools.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}

// endpoints returns all operations, in the order of their paths.
func (r *reader) endpoints() []endpoint {
	if r.spec.Paths == nil {
		return nil
	}
	items := r.spec.Paths.Map()
	var all []endpoint
	for _, path := range sortedKeys(items) {
		item := items[path]
		if item == nil {
			continue
		}
		for _, method := range methods {
			if operation := item.GetOperation(method); operation != nil {
				id := operation.OperationID
				all = append(all, endpoint{id, toolName(id, method, path), method, path, item, operation})
			}
		}
	}
	return all
}

// read makes the operations.
func (r *reader) read(only []string) error {
	all := r.endpoints()
	if only != nil {
		chosen, err := choose(all, only)
		if err != nil {
			return err
		}
		all = chosen
	}
	if len(all) > MaxOperations {
		return fmt.Errorf("the document has %d operations; name at most %d of them in operations", len(all), MaxOperations)
	}
	first := map[string]endpoint{}
	twice := map[string]bool{}
	for _, e := range all {
		name := methodName(e.name)
		if other, taken := first[name]; taken {
			twice[name] = true
			r.note("%s and %s are left out: both would be the tool %s", other, e, e.name)
			continue
		}
		first[name] = e
	}
	var failures []error
	for _, e := range all {
		if twice[methodName(e.name)] {
			if only != nil {
				failures = append(failures, fmt.Errorf("%s cannot be a tool: another operation has the same name", e))
			}
			continue
		}
		operation, err := r.build(e)
		if err != nil {
			if only != nil {
				failures = append(failures, fmt.Errorf("%s cannot be a tool: it %w", e, err))
			}
			r.note("%s is left out: it %s", e, err)
			continue
		}
		r.document.Operations = append(r.document.Operations, operation)
	}
	if len(failures) > 0 {
		return errors.Join(failures...)
	}
	if len(r.document.Operations) == 0 {
		return r.nothing()
	}
	return nil
}

// maxReasons is how many notes the error about a document without tools has.
const maxReasons = 3

// nothing returns the error about a document of which no operation is left, with the reasons.
func (r *reader) nothing() error {
	reasons := r.document.Notes[:min(len(r.document.Notes), maxReasons)]
	if len(reasons) == 0 {
		return errors.New("the document has no operation that can be a tool")
	}
	more := ""
	if n := len(r.document.Notes) - len(reasons); n > 0 {
		more = fmt.Sprintf("; and %d more", n)
	}
	return fmt.Errorf("the document has no operation that can be a tool: %s%s", strings.Join(reasons, "; "), more)
}

// choose returns the operations that are named, by their ids or by the names of their tools.
func choose(all []endpoint, only []string) ([]endpoint, error) {
	var failures []error
	for _, name := range only {
		if !slices.ContainsFunc(all, func(e endpoint) bool { return e.id == name || e.name == name }) {
			failures = append(failures, fmt.Errorf("the document has no operation %.100q", name))
		}
	}
	chosen := slices.DeleteFunc(all, func(e endpoint) bool {
		return !slices.Contains(only, e.id) && !slices.Contains(only, e.name)
	})
	return chosen, errors.Join(failures...)
}

// build makes one operation. The text of the error continues a sentence that begins with "it".
func (r *reader) build(e endpoint) (httptool.Operation, error) {
	if own := r.ownServer(e); own != "" {
		return httptool.Operation{}, fmt.Errorf("has a server of its own, %.100q, and a toolset has one", own)
	}
	in := newInput()
	if err := r.parameters(e, in); err != nil {
		return httptool.Operation{}, err
	}
	if err := r.body(e, in); err != nil {
		return httptool.Operation{}, err
	}
	o := httptool.Operation{
		Name: e.name, Description: cutText(description(e.operation, e.item), MaxDescription),
		Method: e.method, Path: escapePath(e.path), Parameters: in.parameters, Rest: in.rest != nil,
	}
	raw, b, err := r.written(request, in.schema)
	if err != nil {
		return httptool.Operation{}, fmt.Errorf("has an input whose schema cannot be used: %w", err)
	}
	r.tell(e, "input", b)
	o.Input = raw
	if result := r.result(e); result != nil {
		raw, b, err := r.written(answer, func(b *bundle) (any, error) { return b.convert(result, 0) })
		if err != nil {
			r.note("%s: its result has no schema: %s", e, err)
		} else {
			r.tell(e, "result", b)
			o.Output = raw
		}
	}
	if err := o.Check(); err != nil {
		return httptool.Operation{}, fmt.Errorf("cannot be called: %w", err)
	}
	return o, nil
}

// tell adds notes about what was removed from a schema.
func (r *reader) tell(e endpoint, what string, b *bundle) {
	if b.cut {
		r.note("%s: the schema of its %s is too large or refers to itself; below level %d of its references it allows everything", e, what, b.levels)
	}
	for _, pattern := range sortedKeys(b.dropped) {
		r.note("%s: the pattern %.100q of its %s is left out: it is not one of RE2", e, pattern, what)
	}
}

// ownServer returns the server of an operation if it differs from the server of the document, or "".
func (r *reader) ownServer(e endpoint) string {
	servers := e.item.Servers
	if e.operation.Servers != nil && len(*e.operation.Servers) > 0 {
		servers = *e.operation.Servers
	}
	if len(servers) == 0 {
		return ""
	}
	if own := baseURL(servers); own != r.document.BaseURL {
		return own
	}
	return ""
}

// description joins what the document says about an operation.
func description(o *openapi3.Operation, item *openapi3.PathItem) string {
	var parts []string
	for _, text := range []string{o.Summary, o.Description} {
		if text = strings.TrimSpace(text); text != "" && !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return strings.TrimSpace(item.Summary + "\n\n" + item.Description)
	}
	return strings.Join(parts, "\n\n")
}

// escapePath escapes what a path cannot have as it is.
func escapePath(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if c := path[i]; c <= ' ' || c > '~' || c == '"' || c == '<' || c == '>' || c == '\\' || c == '^' || c == '`' || c == '|' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// result returns the schema of the JSON answer with the lowest status that reports success.
func (r *reader) result(e endpoint) any {
	if e.operation.Responses == nil {
		return nil
	}
	responses := e.operation.Responses.Map()
	for _, status := range sortedKeys(responses) {
		response := responses[status]
		if !strings.HasPrefix(status, "2") || response == nil || response.Value == nil {
			continue
		}
		if media := jsonContent(response.Value.Content); media != nil && media.Schema != nil {
			return r.plain(media.Schema)
		}
	}
	return nil
}
