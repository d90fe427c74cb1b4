package api

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"fermata/engine"
)

// A request is a body taken apart and not yet judged. Names are matched exactly,
// unknown ones are ignored. Values are slices of the
// body: no number and no string passes through a Go type on its way to the program.
type request struct {
	Token    jsontext.Value       `json:"continuation_token"`
	Results  array[resultMembers] `json:"tool_results"`
	Code     jsontext.Value       `json:"code"`
	Tools    array[toolMembers]   `json:"tools"`
	Session  jsontext.Value       `json:"session_id"`
	Timeout  jsontext.Value       `json:"timeout"`
	Files    array[fileMembers]   `json:"files"`
	Lang     jsontext.Value       `json:"lang"`
	Language jsontext.Value       `json:"language"`
	Args     jsontext.Value       `json:"args"`
}

type resultMembers struct {
	CallID       jsontext.Value `json:"call_id"`
	Result       jsontext.Value `json:"result"`
	IsError      jsontext.Value `json:"is_error"`
	ErrorMessage jsontext.Value `json:"error_message"`
}

type toolMembers struct {
	Name        jsontext.Value `json:"name"`
	Description jsontext.Value `json:"description"`
	Parameters  jsontext.Value `json:"parameters"`
}

type fileMembers struct {
	ID             jsontext.Value `json:"id"`
	Name           jsontext.Value `json:"name"`
	Session        jsontext.Value `json:"session_id"`
	StorageSession jsontext.Value `json:"storage_session_id"`
	Resource       jsontext.Value `json:"resource_id"`
	Kind           jsontext.Value `json:"kind"`
	Version        jsontext.Value `json:"version"`
}

// continues tells a continuation from an initial request.
func (r request) continues() bool { return r.Token != nil }

// An array is a list of objects, or a note of what stood in its place.
type array[T any] struct {
	// kind is 0 if there was nothing, otherwise the kind of the JSON value.
	kind jsontext.Kind
	// count is the number of entries, of which the first limit are in entries.
	count, limit int
	entries      []T
	// strays tells that an entry was no object; stray is the first such.
	strays bool
	stray  int
}

// given reports whether there was something other than null.
func (a *array[T]) given() bool { return a.kind != 0 && a.kind != jsontext.KindNull }

// UnmarshalJSONFrom reads the array in the same pass as what is around it.
func (a *array[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*a = array[T]{kind: d.PeekKind(), limit: a.limit}
	if a.kind != jsontext.KindBeginArray {
		return d.SkipValue()
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for ; d.PeekKind() != jsontext.KindEndArray; a.count++ {
		if err := a.readEntry(d); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

func (a *array[T]) readEntry(d *jsontext.Decoder) error {
	isObject := d.PeekKind() == jsontext.KindBeginObject
	if !isObject && !a.strays {
		a.strays, a.stray = true, a.count
	}
	if !isObject || a.count >= a.limit {
		return d.SkipValue()
	}
	var entry T
	if err := json.UnmarshalDecode(d, &entry); err != nil {
		return err
	}
	a.entries = append(a.entries, entry)
	return nil
}

// decode takes a body apart. Its errors are for the client.
func decode(body []byte, limits Limits) (request, error) {
	if !utf8.Valid(body) {
		return request{}, errNotUTF8
	}
	if engine.TooDeep(body) {
		return request{}, errTooDeep
	}
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && jsontext.Kind(trimmed[0]) != jsontext.KindBeginObject {
		// Broken JSON is reported as what it is.
		if !jsontext.Value(body).IsValid() {
			return request{}, errNotJSON
		}
		return request{}, errNotAnObject
	}
	r := request{
		Results: array[resultMembers]{limit: limits.Results},
		Tools:   array[toolMembers]{limit: limits.Tools},
		Files:   array[fileMembers]{limit: MaxFiles},
	}
	err := json.Unmarshal(body, &r,
		// The bytes are UTF-8; what this allows is an escape of half a surrogate
		// pair, which Python has strings for.
		jsontext.AllowInvalidUTF8(true),
		// As in the clients' own JSON, the last of several equal names counts.
		jsontext.AllowDuplicateNames(true),
		json.WithUnmarshalers(json.UnmarshalFromFunc(sliceOf(body))))
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return request{}, syntaxError(syntax.ByteOffset)
	}
	if err != nil {
		return request{}, errNotJSON
	}
	return r, nil
}

// sliceOf returns the decoder of a raw value, which is where it stands in body.
// The library would copy it, and a body may be large.
func sliceOf(body []byte) func(*jsontext.Decoder, *jsontext.Value) error {
	return func(d *jsontext.Decoder, v *jsontext.Value) error {
		read, err := d.ReadValue()
		if err != nil {
			return err
		}
		end := d.InputOffset()
		*v = body[end-int64(len(read)) : end : end]
		return nil
	}
}

// unquote returns the text of a JSON string, and whether v is one.
func unquote(v jsontext.Value) (string, bool) {
	if v.Kind() != jsontext.KindString {
		return "", false
	}
	// The only error there can be is half a surrogate pair, now replaced.
	text, _ := jsontext.AppendUnquote(nil, v)
	return string(text), true
}
