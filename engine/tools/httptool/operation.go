package httptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// An Operation is a tool that is one HTTP request. It describes the request completely: members of the input
// that are not in Parameters are never sent, unless Rest is true.
type Operation struct {
	// Name is the name of the tool.
	Name        string
	Description string
	// Method is GET, HEAD, POST, PUT, PATCH or DELETE.
	Method string
	// Path is the path of the endpoint, relative to the base URL. It begins with a slash, and each {name} in
	// it is a parameter. Everything else in it is sent as it is, so it must be escaped.
	Path string
	// Query is an escaped query that is sent with every call, or empty.
	Query string
	// Media is the media type of the body. It is empty for application/json.
	Media string
	// Parameters are the members of the input that are sent, in the order in which they are sent.
	Parameters []Parameter
	// Rest says that members of the input that are not parameters are sent in the body, since the schema
	// allows members with any name.
	Rest bool
	// Input is the JSON Schema of the input, an object. If it is nil every object is allowed.
	Input json.RawMessage
	// Output is the JSON Schema of the result, or nil.
	Output json.RawMessage
	// Result is the JSON Pointer of the result within the answer. It is empty for the whole answer.
	Result string
}

// A Parameter is a member of the input and where it goes in the request.
type Parameter struct {
	// Name is the name of the member in the input.
	Name string
	// Sent is the name under which the endpoint gets it. It is empty if that is Name.
	Sent string
	// In is the part of the request.
	In In
	// Style says how lists and objects are written. In a body it has a meaning only for forms.
	Style Style
	// Media is the media type of the part in a body of several parts, or empty.
	Media string
}

// In is a part of a request.
type In string

// The parts of a request.
const (
	InPath   In = "path"
	InQuery  In = "query"
	InHeader In = "header"
	InBody   In = "body"  // a member of the object that is the body
	InWhole  In = "whole" // the body itself
)

// A Style says how lists and objects are written in the path, the query, a header or a form.
type Style string

// The styles. Text, numbers and booleans are the same in all of them but JSON.
const (
	StyleRepeat Style = ""       // a=1&a=2, in a query or a form only; the default
	StyleComma  Style = "comma"  // a=1,2, and a=b,1,c,2 for the object {b: 1, c: 2}
	StylePairs  Style = "pairs"  // the same, but b=1,c=2 for an object
	StyleSpace  Style = "space"  // a=1%202, in a query or a form only
	StylePipe   Style = "pipe"   // a=1%7C2, in a query or a form only
	StyleDeep   Style = "deep"   // a[b]=1&a[c][0]=2 for the object {b: 1, c: [2]}, in a query or a form only
	StyleSpread Style = "spread" // b=1&c=2 for the object {b: 1, c: 2}, in a query or a form only
	StyleJSON   Style = "json"   // a=[1,2]
	StyleFile   Style = "file"   // a file, in a body of several parts only
)

// sent returns the name of a parameter in the request.
func (p Parameter) sent() string {
	if p.Sent != "" {
		return p.Sent
	}
	return p.Name
}

// Idempotent reports whether a call of the operation may be repeated by the rules of HTTP.
func (o Operation) Idempotent() bool {
	return o.Method == http.MethodGet || o.Method == http.MethodHead || o.Method == http.MethodPut || o.Method == http.MethodDelete
}

// Place returns the parameters of an operation that is described only by method, path and schema. Those that
// the path names are sent in the path. The others are sent in the query of GET, HEAD and DELETE, and in a
// JSON body otherwise. rest is the value for Operation.Rest.
func Place(method, path string, schema json.RawMessage) (parameters []Parameter, rest bool, err error) {
	pieces, err := parsePath(path)
	if err != nil {
		return nil, false, err
	}
	names, open := members(schema)
	where := InBody
	if method == http.MethodGet || method == http.MethodHead || method == http.MethodDelete {
		where = InQuery
	}
	for _, p := range pieces {
		if p.parameter && !slices.ContainsFunc(parameters, func(q Parameter) bool { return q.Name == p.text }) {
			parameters = append(parameters, Parameter{Name: p.text, In: InPath})
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(parameters, func(q Parameter) bool { return q.Name == name }) {
			parameters = append(parameters, Parameter{Name: name, In: where})
		}
	}
	return parameters, open && where == InBody, nil
}

// notFromInput are headers that no parameter may set, since they say where a request goes, who sends it, and
// where it ends.
var notFromInput = []string{
	"accept-encoding", "authorization", "connection", "cookie", "cookie2", "expect", "forwarded",
	"host", "http2-settings", "idempotency-key", "keep-alive", "origin", "referer", "set-cookie", "te", "trailer",
	"transfer-encoding", "upgrade", "via", "x-http-method", "x-http-method-override", "x-method-override",
	"x-original-url", "x-real-ip", "x-rewrite-url",
}

// notFromInputPrefixes are beginnings of such headers.
var notFromInputPrefixes = []string{"content-", "proxy-", "sec-", "x-forwarded-", "x-original-"}

// notConfigured are headers that even the operator cannot set, since the HTTP client sets them itself.
var notConfigured = []string{
	"accept-encoding", "connection", "content-encoding", "content-length", "expect", "host",
	"http2-settings", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
}

// Check finds what is wrong with an operation in itself.
func (o Operation) Check() error {
	if o.Name == "" {
		return errors.New("an operation has no name")
	}
	switch o.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return fmt.Errorf("%s: the method must be GET, HEAD, POST, PUT, PATCH or DELETE", o.Name)
	}
	pieces, err := parsePath(o.Path)
	if err != nil {
		return fmt.Errorf("%s: the path %w", o.Name, err)
	}
	if _, err := parsePointer(o.Result); err != nil {
		return fmt.Errorf("%s: the result %w", o.Name, err)
	}
	if _, err := url.ParseQuery(o.Query); err != nil || strings.ContainsFunc(o.Query, func(r rune) bool { return r <= ' ' || r > '~' || r == '#' }) {
		return fmt.Errorf("%s: the query %q is not escaped", o.Name, o.Query)
	}
	if o.kind() == "" || strings.ContainsFunc(o.Media, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fmt.Errorf("%s: %q is no media type", o.Name, o.Media)
	}
	names, wholes, bodies := map[string]bool{}, 0, 0
	for _, p := range o.Parameters {
		if p.Name == "" || names[p.Name] {
			return fmt.Errorf("%s: two parameters have the name %q, or one has none", o.Name, p.Name)
		}
		names[p.Name] = true
		if err := p.check(pieces); err != nil {
			return fmt.Errorf("%s: the parameter %q %w", o.Name, p.Name, err)
		}
		switch p.In {
		case InWhole:
			wholes++
		case InBody:
			bodies++
		default:
		}
	}
	if o.Rest {
		bodies++
	}
	if wholes > 1 || wholes == 1 && bodies > 0 {
		return fmt.Errorf("%s: a body is either one parameter or an object of parameters", o.Name)
	}
	if wholes+bodies > 0 && (o.Method == http.MethodGet || o.Method == http.MethodHead) {
		return fmt.Errorf("%s: a %s request has no body", o.Name, o.Method)
	}
	for _, piece := range pieces {
		if piece.parameter && !slices.ContainsFunc(o.Parameters, func(p Parameter) bool { return p.In == InPath && p.sent() == piece.text }) {
			return fmt.Errorf("%s: {%s} in the path is no parameter", o.Name, piece.text)
		}
	}
	return nil
}

// check finds what is wrong with a parameter.
func (p Parameter) check(path []piece) error {
	switch p.In {
	case InPath:
		if !slices.ContainsFunc(path, func(piece piece) bool { return piece.parameter && piece.text == p.sent() }) {
			return errors.New("is not in the path")
		}
	case InHeader:
		if !isToken(p.sent()) || isForbidden(p.sent()) {
			return errors.New("is a header that no call may set")
		}
	case InQuery, InBody, InWhole:
	default:
		return fmt.Errorf("is in %q, which is no part of a request", p.In)
	}
	switch p.Style {
	case StyleRepeat, StyleComma, StylePairs, StyleJSON:
	case StyleSpace, StylePipe, StyleDeep, StyleSpread:
		if p.In != InQuery && p.In != InBody {
			return fmt.Errorf("has the style %s, which is for queries and forms", p.Style)
		}
	case StyleFile:
		if p.In != InBody {
			return fmt.Errorf("has the style %s, which is for bodies", p.Style)
		}
	default:
		return fmt.Errorf("has the style %q, which is not known", p.Style)
	}
	return nil
}

// HeaderAllowed reports whether a parameter may set a header.
func HeaderAllowed(name string) bool { return isToken(name) && !isForbidden(name) }

// isForbidden reports whether no parameter may set a header.
func isForbidden(header string) bool {
	header = strings.ToLower(header)
	return slices.Contains(notFromInput, header) ||
		slices.ContainsFunc(notFromInputPrefixes, func(prefix string) bool { return strings.HasPrefix(header, prefix) })
}

// isToken reports whether a text can be the name of a header.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}
