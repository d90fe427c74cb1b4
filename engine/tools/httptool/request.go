package httptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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
	values, query, fields := map[string]string{}, []string{}, []field(nil)
	var whole json.RawMessage
	for _, constant := range []string{o.base.RawQuery, o.Query} {
		if constant != "" {
			query = append(query, constant)
		}
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
			fields = append(fields, field{p, value})
		case InWhole:
			whole = value
		}
		if err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if !o.Rest {
			return nil, fmt.Errorf("%s: is not a parameter of this tool", shown(name))
		}
		fields = append(fields, field{Parameter{Name: name, In: InBody}, args[name]})
	}
	if err := o.write(r, fields, whole); err != nil {
		return nil, err
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

// appendQuery appends a parameter to the query, or to a form.
func (o *operation) appendQuery(query []string, p Parameter, value json.RawMessage) ([]string, error) {
	add := func(name string, value json.RawMessage) error {
		text, err := joined(p, value)
		if err == nil && (strings.ContainsRune(text, 0) || strings.ContainsRune(name, 0)) {
			err = fmt.Errorf("%s: must not have NUL characters", p.Name)
		}
		query = append(query, escape(name)+"="+escape(text))
		return err
	}
	var err error
	switch kind := jsontext.Value(value).Kind(); {
	case p.Style == StyleDeep && (kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray):
		err = deep(p.sent(), value, add)
	case kind == jsontext.KindBeginArray && p.Style == StyleRepeat:
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			return nil, fmt.Errorf("%s: is not a list", p.Name)
		}
		for _, item := range list {
			if jsontext.Value(item).Kind() != jsontext.KindNull && err == nil {
				err = add(p.sent(), item)
			}
		}
	case kind == jsontext.KindBeginObject && p.Style == StyleSpread:
		for _, m := range entries(value) {
			if jsontext.Value(m.value).Kind() == jsontext.KindNull {
				continue
			}
			if o.isTaken(p.In, m.name) {
				return nil, fmt.Errorf("%s: must not have the member %s, which is another parameter", p.Name, shown(m.name))
			}
			if err = add(m.name, m.value); err != nil {
				break
			}
		}
	default:
		err = add(p.sent(), value)
	}
	return query, err
}

// deep adds the values of an object or a list, each with its whole way as its name: a[b]=1 or a[0][b]=1.
func deep(name string, value json.RawMessage, add func(name string, value json.RawMessage) error) error {
	var inner []entry
	switch jsontext.Value(value).Kind() {
	case jsontext.KindNull:
		return nil
	case jsontext.KindBeginObject:
		inner = entries(value)
	case jsontext.KindBeginArray:
		var list []json.RawMessage
		if err := json.Unmarshal(value, &list); err != nil {
			return errors.New("the input is not valid JSON")
		}
		for i, item := range list {
			inner = append(inner, entry{strconv.Itoa(i), item})
		}
	default:
		return add(name, value)
	}
	for _, m := range inner {
		if err := deep(name+"["+m.name+"]", m.value, add); err != nil {
			return err
		}
	}
	return nil
}

// isTaken reports whether a name in the query or in the body is the name of a parameter, or is set for all calls.
func (o *operation) isTaken(in In, name string) bool {
	return in == InQuery && o.taken[strings.ToLower(name)] || slices.ContainsFunc(o.Parameters, func(p Parameter) bool {
		return p.In == in && strings.EqualFold(p.sent(), name)
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

// separators stand between the elements of a list, and between the names and values of an object.
var separators = map[Style]string{StyleComma: ",", StyleSpace: " ", StylePipe: "|", StylePairs: ","}

// joined returns a value as one text. The elements of a list are joined, and so are the members of an object.
func joined(p Parameter, value json.RawMessage) (string, error) {
	if p.Style == StyleJSON {
		return string(value), nil
	}
	separator, known := separators[p.Style]
	kind := jsontext.Value(value).Kind()
	if kind == jsontext.KindBeginArray && known {
		list, err := texts(p, value)
		return strings.Join(list, separator), err
	}
	if kind == jsontext.KindBeginObject && known {
		var list []string
		for _, m := range entries(value) {
			if jsontext.Value(m.value).Kind() == jsontext.KindNull {
				continue
			}
			text, err := scalar(p, m.value)
			if err != nil {
				return "", err
			}
			if p.Style == StylePairs {
				list = append(list, m.name+"="+text)
			} else {
				list = append(list, m.name, text)
			}
		}
		return strings.Join(list, separator), nil
	}
	if p.In == InBody && (kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray) && p.Style == StyleRepeat {
		return string(value), nil // A form has these as JSON.
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
