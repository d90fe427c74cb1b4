package openapi

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"fermata/engine/tools/httptool"
)

// A reader makes operations from one document.
type reader struct {
	tree     *object
	old      bool // the document is OpenAPI 3.0
	document *Document
	notes    notes
}

// An endpoint is an operation as the document has it.
type endpoint struct {
	id, name, method, path string
	item, operation        placed
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
func (r *reader) endpoints() ([]endpoint, error) {
	paths := placed{r.tree, nil}.member("paths")
	items, ok := paths.value.(*object)
	if !ok && paths.value != nil {
		return nil, fmt.Errorf("the document is not a valid OpenAPI document: a JSON %s stands in the place of paths", kind(paths.value))
	}
	var all []endpoint
	for _, path := range sortedNames(items) {
		if strings.HasPrefix(path, "x-") {
			continue
		}
		item, at, err := follow(r.tree, paths.member(path))
		if err == nil && item == nil && items.get(path) != nil {
			err = fmt.Errorf("is no object, at %s", at)
		}
		if err != nil {
			r.notes.leaveOut(endpoint{id: path}, err)
			continue
		}
		for _, method := range methods {
			operation := placed{item, at}.member(strings.ToLower(method))
			if operation.value == nil {
				continue
			}
			e := endpoint{method: method, path: path, item: placed{item, at}, operation: operation}
			o, where, err := follow(r.tree, operation)
			if err != nil {
				r.notes.leaveOut(e, err)
				continue
			}
			if o != nil {
				e.id, e.operation = o.text("operationId"), placed{o, where}
			}
			e.name = toolName(e.id, method, path)
			all = append(all, e)
		}
	}
	return all, nil
}

// read makes the operations.
func (r *reader) read(choice Choice) error {
	all, err := r.endpoints()
	if err != nil {
		return err
	}
	chosen, named, err := choose(all, choice)
	if err != nil {
		return err
	}
	if len(chosen) < len(all) {
		r.notes = notes{} // Those until here are about what nobody has asked for.
	}
	if len(chosen) > MaxOperations {
		return fmt.Errorf("the document has %d operations; name at most %d of them in operations", len(chosen), MaxOperations)
	}
	var failures []error
	for _, e := range rename(chosen) {
		operation, err := r.build(e)
		if err != nil {
			if named(e) {
				failures = append(failures, fmt.Errorf("%s cannot be a tool: it %w", e, err))
			}
			r.notes.leaveOut(e, err)
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
	lines := r.notes.lines()
	reasons := lines[:min(len(lines), maxReasons)]
	if len(reasons) == 0 {
		return errors.New("the document has no operation that can be a tool")
	}
	more := ""
	if n := len(lines) - len(reasons); n > 0 {
		more = fmt.Sprintf("; and %d more", n)
	}
	return fmt.Errorf("the document has no operation that can be a tool: %s%s", strings.Join(reasons, "; "), more)
}

// build makes one operation. The text of the error continues a sentence that begins with "it".
func (r *reader) build(e endpoint) (httptool.Operation, error) {
	declared, ok := e.operation.value.(*object)
	if !ok {
		return httptool.Operation{}, fmt.Errorf("is no object, at %s", e.operation.at)
	}
	if own := r.ownServer(e); own != "" {
		return httptool.Operation{}, fmt.Errorf("has a server of its own, %.100q, and a toolset has one", own)
	}
	in := &input{}
	if err := r.parameters(e, in); err != nil {
		return httptool.Operation{}, err
	}
	if err := r.body(e, in); err != nil {
		return httptool.Operation{}, err
	}
	path, query, err := splitPath(e.path)
	if err != nil {
		return httptool.Operation{}, err
	}
	item, _ := e.item.value.(*object)
	o := httptool.Operation{
		Name: e.name, Description: cutText(description(declared, item), MaxDescription),
		Method: e.method, Path: path, Query: query, Parameters: in.parameters, Rest: in.rest != nil, Media: in.media,
	}
	raw, b, err := r.written(request, in.schema)
	if err != nil {
		return httptool.Operation{}, fmt.Errorf("has an input whose schema cannot be used: %w", err)
	}
	r.tell(e, "input", b)
	o.Input = raw
	if result := r.result(e); result.value != nil {
		raw, b, err := r.written(answer, func(b *bundle) (any, error) { return b.convert(result, 0) })
		if err != nil {
			r.notes.add(e, "its result has no schema: "+err.Error(), "")
		} else {
			r.tell(e, "result", b)
			o.Output = raw
		}
	}
	if err := o.Check(); err != nil {
		return httptool.Operation{}, fmt.Errorf("cannot be called: %s", strings.TrimPrefix(err.Error(), o.Name+": "))
	}
	return o, nil
}

// tell adds notes about what was removed from a schema.
func (r *reader) tell(e endpoint, what string, b *bundle) {
	if b.cut {
		r.notes.add(e, "the schema of its "+what+" is too large or refers to itself; below some levels of its references it allows everything", "")
	}
	for _, d := range b.dropped {
		r.notes.add(e, d.text, d.where)
	}
}

// ownServer returns the server of an operation if it differs from the server of the document, or "".
func (r *reader) ownServer(e endpoint) string {
	servers, _ := e.item.member("servers").value.([]any)
	if own, _ := e.operation.member("servers").value.([]any); len(own) > 0 {
		servers = own
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
func description(operation, item *object) string {
	var parts []string
	for _, name := range []string{"summary", "description"} {
		if text := strings.TrimSpace(operation.text(name)); text != "" && !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return strings.TrimSpace(item.text("summary") + "\n\n" + item.text("description"))
	}
	return strings.Join(parts, "\n\n")
}

// splitPath returns the path of an operation and the query that is the same for all calls. A fragment only
// tells two operations of a document apart, and is not sent.
func splitPath(path string) (escaped, query string, err error) {
	path, _, _ = strings.Cut(path, "#")
	path, query, _ = strings.Cut(path, "?")
	if query == "" {
		return escapePath(path), "", nil
	}
	var parts []string
	for part := range strings.SplitSeq(query, "&") {
		name, value, found := strings.Cut(part, "=")
		plainName, nameErr := url.QueryUnescape(name)
		plainValue, valueErr := url.QueryUnescape(value)
		if nameErr != nil || valueErr != nil || plainName == "" || strings.ContainsAny(part, "{}") {
			return "", "", fmt.Errorf("has the query %.100q in its path, which is no constant one", query)
		}
		part = url.QueryEscape(plainName)
		if found {
			part += "=" + url.QueryEscape(plainValue)
		}
		parts = append(parts, part)
	}
	return escapePath(path), strings.Join(parts, "&"), nil
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
func (r *reader) result(e endpoint) placed {
	responses, at, err := follow(r.tree, e.operation.member("responses"))
	if err != nil || responses == nil {
		return placed{}
	}
	for _, status := range sortedNames(responses) {
		if !strings.HasPrefix(status, "2") {
			continue
		}
		response, at, err := follow(r.tree, placed{responses, at}.member(status))
		if err != nil || response == nil {
			continue
		}
		content := placed{response, at}.member("content")
		if media, name := mediaOf(content, isJSON); name != "" {
			if schema := media.member("schema"); schema.value != nil {
				return schema
			}
		}
	}
	return placed{}
}
