package httptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxURL is how many bytes the URL of a call may have.
const MaxURL = 16 << 10

// operation is an Operation of a source, with what follows from the options of the source.
type operation struct {
	Operation
	pieces []piece
	base   *url.URL
	// hidden are the names of parameters that the operator has set for all calls.
	hidden []string
	// taken are the names, in small letters, that the query of the base URL has.
	taken map[string]bool
}

// request is the HTTP request of a call.
type request struct {
	url    *url.URL
	header http.Header
	body   []byte
}

// build makes the request of a call. The error is a text for the program and names what is wrong.
func (o *operation) build(input json.RawMessage) (*request, error) {
	args, err := arguments(input)
	if err != nil {
		return nil, err
	}
	r := &request{header: http.Header{}}
	values, query, body := map[string]string{}, []string{}, []entry(nil)
	if o.base.RawQuery != "" {
		query = append(query, o.base.RawQuery)
	}
	for _, p := range o.Parameters {
		value, given := args[p.Name]
		delete(args, p.Name)
		if given && slices.Contains(o.hidden, p.Name) {
			return nil, fmt.Errorf("%s: is set by the server and cannot be given", p.Name)
		}
		null := given && jsontext.Value(value).Kind() == jsontext.KindNull
		switch {
		case p.In == InPath && (!given || null):
			return nil, fmt.Errorf("%s: is required, since it is a part of the path", p.Name)
		case !given, null && (p.In == InQuery || p.In == InHeader):
			continue
		}
		switch p.In {
		case InPath:
			values[p.sent()], err = joined(p, value)
		case InQuery:
			query, err = o.appendQuery(query, p, value)
		case InHeader:
			err = setHeader(r.header, p, value)
		case InBody:
			body = append(body, entry{p.sent(), value})
		case InWhole:
			r.body = value
		}
		if err != nil {
			return nil, err
		}
	}
	for name, value := range args {
		if !o.Rest {
			return nil, fmt.Errorf("%s: is not a parameter of this tool", shown(name))
		}
		body = append(body, entry{name, value})
	}
	if o.hasMembers() {
		r.body = marshal(body)
	}
	if r.body != nil {
		r.header.Set("Content-Type", "application/json")
	}
	r.url, err = o.address(values, strings.Join(query, "&"))
	return r, err
}

// arguments returns the members of the input.
func arguments(input json.RawMessage) (map[string]json.RawMessage, error) {
	var args map[string]json.RawMessage
	if len(input) == 0 {
		return args, nil
	}
	if err := json.Unmarshal(input, &args); err != nil || args == nil {
		return nil, errors.New("the input must be an object")
	}
	return args, nil
}

// hasMembers reports whether the body is an object of parameters.
func (o *operation) hasMembers() bool {
	return o.Rest || slices.ContainsFunc(o.Parameters, func(p Parameter) bool { return p.In == InBody })
}

// marshal returns an object with the members, sorted by name so that equal calls are equal.
func marshal(members []entry) []byte {
	slices.SortFunc(members, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	out := []byte("{")
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out, _ = jsontext.AppendQuote(out, m.name)
		out = append(append(out, ':'), m.value...)
	}
	return append(out, '}')
}

// address returns the URL of a call. It consists of the base URL, the path of the operation and the query,
// and no input can change that.
func (o *operation) address(values map[string]string, query string) (*url.URL, error) {
	path, err := fillPath(o.pieces, values)
	if err != nil {
		return nil, err
	}
	path = strings.TrimSuffix(o.base.EscapedPath(), "/") + path
	plain, err := url.PathUnescape(path)
	if err != nil {
		return nil, errors.New("the path of the call cannot be built")
	}
	u := &url.URL{Scheme: o.base.Scheme, Host: o.base.Host, Path: plain, RawPath: path, RawQuery: query}
	if u.EscapedPath() != path {
		return nil, errors.New("the path of the call cannot be built")
	}
	if len(path)+len(query) > MaxURL {
		return nil, fmt.Errorf("the input makes a URL of %d bytes: the limit is %d bytes", len(path)+len(query), MaxURL)
	}
	return u, nil
}

// appendQuery appends a parameter to the query.
func (o *operation) appendQuery(query []string, p Parameter, value json.RawMessage) ([]string, error) {
	add := func(name, text string) error {
		if strings.ContainsRune(text, 0) || strings.ContainsRune(name, 0) {
			return fmt.Errorf("%s: must not have NUL characters", p.Name)
		}
		query = append(query, escape(name)+"="+escape(text))
		return nil
	}
	kind := jsontext.Value(value).Kind()
	switch {
	case kind == jsontext.KindBeginArray && p.Style == StyleRepeat:
		list, err := texts(p, value)
		if err != nil {
			return nil, err
		}
		for _, text := range list {
			if err := add(p.sent(), text); err != nil {
				return nil, err
			}
		}
		return query, nil
	case kind == jsontext.KindBeginObject && (p.Style == StyleDeep || p.Style == StyleSpread):
		for _, m := range entries(value) {
			if jsontext.Value(m.value).Kind() == jsontext.KindNull {
				continue
			}
			text, err := scalar(p, m.value)
			if err != nil {
				return nil, err
			}
			name := p.sent() + "[" + m.name + "]"
			if p.Style == StyleSpread {
				if name = m.name; o.isTaken(name) {
					return nil, fmt.Errorf("%s: must not have the member %s, which is another parameter", p.Name, shown(name))
				}
			}
			if err := add(name, text); err != nil {
				return nil, err
			}
		}
		return query, nil
	default:
		text, err := joined(p, value)
		if err == nil {
			err = add(p.sent(), text)
		}
		return query, err
	}
}

// isTaken reports whether a name in the query is the name of a parameter, or is set by the operator.
func (o *operation) isTaken(name string) bool {
	return o.taken[strings.ToLower(name)] || slices.ContainsFunc(o.Parameters, func(p Parameter) bool {
		return p.In == InQuery && strings.EqualFold(p.sent(), name)
	})
}

// setHeader sets the header of a parameter.
func setHeader(h http.Header, p Parameter, value json.RawMessage) error {
	text, err := joined(p, value)
	if err != nil {
		return err
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fmt.Errorf("%s: must have printable ASCII characters only, since it is sent as a header", p.Name)
	}
	h.Set(p.sent(), text)
	return nil
}

// separators stand between the elements of a list.
var separators = map[Style]string{StyleComma: ",", StyleSpace: " ", StylePipe: "|"}

// joined returns a value as one text. The elements of a list are joined.
func joined(p Parameter, value json.RawMessage) (string, error) {
	if p.Style == StyleJSON {
		return string(value), nil
	}
	separator, known := separators[p.Style]
	if jsontext.Value(value).Kind() == jsontext.KindBeginArray && known {
		list, err := texts(p, value)
		return strings.Join(list, separator), err
	}
	return scalar(p, value)
}

// texts returns the texts of a list. Null is left out.
func texts(p Parameter, value json.RawMessage) ([]string, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(value, &list); err != nil {
		return nil, fmt.Errorf("%s: is not a list", p.Name)
	}
	var out []string
	for _, item := range list {
		if jsontext.Value(item).Kind() == jsontext.KindNull {
			continue
		}
		text, err := scalar(p, item)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, nil
}

// scalar returns a text, number or boolean as a text. Numbers keep their digits.
func scalar(p Parameter, value json.RawMessage) (string, error) {
	switch v := jsontext.Value(value); v.Kind() {
	case jsontext.KindString:
		text, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			return "", fmt.Errorf("%s: is not valid text", p.Name)
		}
		return string(text), nil
	case jsontext.KindNumber, jsontext.KindTrue, jsontext.KindFalse:
		return string(bytes.TrimSpace(v)), nil
	case jsontext.KindBeginArray:
		return "", fmt.Errorf("%s: must be a text, a number or a boolean within the %s, not a list", p.Name, p.In)
	case jsontext.KindBeginObject:
		return "", fmt.Errorf("%s: must be a text, a number or a boolean within the %s, not an object", p.Name, p.In)
	default:
		return "", fmt.Errorf("%s: must be a text, a number or a boolean within the %s", p.Name, p.In)
	}
}

// shown returns a name from the input as an error shows it.
func shown(name string) string {
	if len(name) > 100 {
		name = strings.ToValidUTF8(name[:100], "") + "…"
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Sprintf("%+q", name)
	}
	return name
}
