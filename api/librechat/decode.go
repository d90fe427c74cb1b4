package librechat

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"fermata/api"
	"fermata/engine"
)

// A request is a decoded body that is not checked yet. Names are matched exactly, and unknown ones
// are ignored. Values are slices of the body: a member of the wrong type needs an error text of
// its own, and numbers and strings must not pass through a Go type on their way to the program.
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
	Title    jsontext.Value       `json:"title"`
	Labels   jsontext.Value       `json:"labels"`
	Parent   jsontext.Value       `json:"parent_call_id"`
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

// An array is a list of objects, or a note of what stands in its place.
type array[T any] struct {
	// kind is the kind of the JSON value, 0 if there was none.
	kind jsontext.Kind
	// count is the number of entries, of which the first limit are in entries.
	count, limit int
	entries      []T
	// strays is true if an entry is not an object; stray is the index of the first such entry.
	strays bool
	stray  int
}

// given reports whether there was a value other than null.
func (a *array[T]) given() bool { return a.kind != 0 && a.kind != jsontext.KindNull }

// UnmarshalJSONFrom reads the array in the same pass as the body around it.
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

// decode decodes a body. Its errors are for the client.
func decode(body []byte, limits Limits) (request, error) {
	if !utf8.Valid(body) {
		return request{}, errNotUTF8
	}
	if engine.TooDeep(body) {
		return request{}, errTooDeep
	}
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && jsontext.Kind(trimmed[0]) != jsontext.KindBeginObject {
		// Broken JSON is reported as such, and not as a value of the wrong type.
		if !jsontext.Value(body).IsValid() {
			return request{}, api.ErrNotJSON
		}
		return request{}, errNotAnObject
	}
	r := request{
		Results: array[resultMembers]{limit: limits.Results},
		Tools:   array[toolMembers]{limit: limits.Tools},
		Files:   array[fileMembers]{limit: MaxFiles},
	}
	err := json.Unmarshal(body, &r,
		// The bytes are UTF-8. This allows an escape of half a surrogate pair, which a
		// string in Python can contain.
		jsontext.AllowInvalidUTF8(true),
		// Of several equal names the last one counts, as in the JSON libraries of clients.
		jsontext.AllowDuplicateNames(true),
		json.WithUnmarshalers(json.UnmarshalFromFunc(sliceOf(body))))
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return request{}, api.BadRequestf("request body is not valid JSON at byte %d", syntax.ByteOffset)
	}
	if err != nil {
		return request{}, api.ErrNotJSON
	}
	return r, nil
}

// sliceOf returns a decoder of raw values that makes them slices of body. The library would
// copy them, and a body may be large.
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

// unquote returns the text of a JSON string, and whether v is a string.
func unquote(v jsontext.Value) (string, bool) {
	if v.Kind() != jsontext.KindString {
		return "", false
	}
	// The only possible error is half a surrogate pair, which has been replaced.
	text, _ := jsontext.AppendUnquote(nil, v)
	return string(text), true
}

// isNull reports whether a member is null or absent.
func isNull(v jsontext.Value) bool { return v == nil || v.Kind() == jsontext.KindNull }

// spelled returns a client's value, cut short, for use in a text about it.
func spelled(v jsontext.Value) string {
	text, ok := unquote(v)
	switch {
	case v == nil:
		text = "undefined"
	case !ok:
		text = string(v)
	}
	const limit = 100
	if utf8.RuneCountInString(text) > limit {
		text = string([]rune(text)[:limit]) + "…"
	}
	return text
}
