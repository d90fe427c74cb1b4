package librechat

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"fermata/api"
	"fermata/engine/core"
)

// A request is a decoded body that is not checked yet. Names are matched exactly, and unknown ones
// are noted (see slips.go). Values are slices of the body: a member of the wrong type needs an error
// text of its own, and numbers and strings must not pass through a Go type on their way to the program.
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
	// What follows is about tools that the server runs, and about approvals; see toolsets.go.
	Toolsets   jsontext.Value `json:"toolsets"`
	Sequential jsontext.Value `json:"sequential"`
	MaxCost    jsontext.Value `json:"max_cost"`
	Approvals  jsontext.Value `json:"approvals"`
	// What follows is about files that the program must produce; see contracted.go.
	Outputs  jsontext.Value `json:"outputs"`
	Missing  jsontext.Value `json:"on_missing"`
	Timeline jsontext.Value `json:"timeline"`

	unknown unknownNames
}

type resultMembers struct {
	CallID       jsontext.Value `json:"call_id"`
	Result       jsontext.Value `json:"result"`
	IsError      jsontext.Value `json:"is_error"`
	ErrorMessage jsontext.Value `json:"error_message"`
	// Guessed is what many clients send in place of ErrorMessage. It is a slip, but a tool that
	// failed must not seem to have succeeded where slips are tolerated.
	Guessed jsontext.Value `json:"error"`
	// Approve decides on a call that waits for approval, and Reason tells why.
	Approve jsontext.Value `json:"approve"`
	Reason  jsontext.Value `json:"reason"`
}

type toolMembers struct {
	Name        jsontext.Value `json:"name"`
	Description jsontext.Value `json:"description"`
	Parameters  jsontext.Value `json:"parameters"`
	// InputSchema and MCPSchema are the names of Parameters in Anthropic's API and in MCP, and
	// Function is OpenAI's way to write the whole definition.
	InputSchema jsontext.Value  `json:"input_schema"`
	MCPSchema   jsontext.Value  `json:"inputSchema"`
	Function    functionMembers `json:"function"`
	// Toolset and Class put the tool into a form that programs import, Approval tells whether each call
	// needs approval, and Envelope whether results are envelopes.
	Toolset  jsontext.Value `json:"toolset"`
	Class    jsontext.Value `json:"class"`
	Approval jsontext.Value `json:"approval"`
	Envelope jsontext.Value `json:"envelope"`
}

// functionMembers are the members of a tool's function, if there is one.
type functionMembers struct {
	Name        jsontext.Value `json:"name"`
	Description jsontext.Value `json:"description"`
	Parameters  jsontext.Value `json:"parameters"`

	// kind is the kind of the JSON value, 0 if there was none.
	kind    jsontext.Kind
	unknown unknownNames
}

type fileMembers struct {
	ID             jsontext.Value `json:"id"`
	Name           jsontext.Value `json:"name"`
	Session        jsontext.Value `json:"session_id"`
	StorageSession jsontext.Value `json:"storage_session_id"`
	Resource       jsontext.Value `json:"resource_id"`
	Kind           jsontext.Value `json:"kind"`
	Version        jsontext.Value `json:"version"`
	// FileID and Filename are the names of ID and Name in answers to uploads.
	FileID   jsontext.Value `json:"fileId"`
	Filename jsontext.Value `json:"filename"`
	// Content is there if the file is not a stored one; Encoding says how it is written.
	Content  jsontext.Value `json:"content"`
	Encoding jsontext.Value `json:"encoding"`
}

// outputMembers are the members of an output of a contract. They are read in engine/outputs.
type outputMembers struct {
	Path        jsontext.Value `json:"path"`
	Description jsontext.Value `json:"description"`
	MediaType   jsontext.Value `json:"mime"`
	Required    jsontext.Value `json:"required"`
	MinBytes    jsontext.Value `json:"min_bytes"`
	Visibility  jsontext.Value `json:"visibility"`
}

// timelineMembers are the members of timeline. They are read in engine/timeline.
type timelineMembers struct {
	Turn    jsontext.Value `json:"turn_id"`
	Call    jsontext.Value `json:"tool_call_id"`
	Tool    jsontext.Value `json:"tool_id"`
	Notes   jsontext.Value `json:"notes"`
	Log     jsontext.Value `json:"log"`
	Include jsontext.Value `json:"include"`
	Base64  jsontext.Value `json:"base64"`

	unknown unknownNames
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
	// members are those of T.
	members []member
	// strays is true if an entry is not an object; stray is the index of the first such entry.
	strays bool
	stray  int
	// unknown are the names in the entries that are no members of T.
	unknown unknownNames
}

// given reports whether there was a value other than null.
func (a *array[T]) given() bool { return a.kind != 0 && a.kind != jsontext.KindNull }

// UnmarshalJSONFrom reads the array in the same pass as the body around it.
func (a *array[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*a = array[T]{kind: d.PeekKind(), limit: a.limit, members: a.members}
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
	a.entries = append(a.entries, *new(T))
	return readObject(d, &a.entries[len(a.entries)-1], a.members, &a.unknown, a.count)
}

// UnmarshalJSONFrom reads a body, which decode has found to be an object.
func (r *request) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return readObject(d, r, requestNames, &r.unknown, 0)
}

// UnmarshalJSONFrom reads the function of a tool. If it is no object, only its kind is kept.
func (f *functionMembers) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*f = functionMembers{kind: d.PeekKind()}
	if f.kind != jsontext.KindBeginObject {
		return d.SkipValue()
	}
	return readObject(d, f, functionNames, &f.unknown, 0)
}

// UnmarshalJSONFrom reads a timeline. What stands in its place is refused where it is read.
func (m *timelineMembers) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() != jsontext.KindBeginObject {
		return d.SkipValue()
	}
	return readObject(d, m, timelineNames, &m.unknown, 0)
}

// A member is a field of a struct that is read from JSON.
type member struct {
	name string
	// plain is the name as slips are looked for.
	plain string
	field int
}

// The members of each object of a request.
var (
	requestNames  = membersOf[request]()
	toolNames     = membersOf[toolMembers]()
	functionNames = membersOf[functionMembers]()
	resultNames   = membersOf[resultMembers]()
	fileNames     = membersOf[fileMembers]()
	outputNames   = membersOf[outputMembers]()
	timelineNames = membersOf[timelineMembers]()
)

// membersOf returns the fields of a struct that have a name in JSON.
func membersOf[T any]() (list []member) {
	of := reflect.TypeFor[T]()
	for i := range of.NumField() {
		if name, ok := of.Field(i).Tag.Lookup("json"); ok {
			list = append(list, member{name, plainName(name), i})
		}
	}
	return list
}

// readObject reads an object into the struct that into points to. The names that are none of its
// members go to unknown, together with the index of the object in its array. The library would
// drop them, or keep all of them, and they are the client's.
func readObject(d *jsontext.Decoder, into any, members []member, unknown *unknownNames, at int) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	fields := reflect.ValueOf(into).Elem()
	for d.PeekKind() != jsontext.KindEndObject {
		raw, err := d.ReadValue()
		if err != nil {
			return err
		}
		name, short := shortName(raw)
		i := slices.IndexFunc(members, func(m member) bool { return short && m.name == string(name) })
		if i >= 0 {
			err = json.UnmarshalDecode(d, fields.Field(members[i].field).Addr().Interface())
		} else {
			if short {
				unknown.note(name, at)
			}
			err = d.SkipValue()
		}
		if err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// shortName returns the text of a name, and whether it is short enough to be like a known one.
func shortName(raw jsontext.Value) (name []byte, ok bool) {
	const escape = len(`\u0000`)
	if len(raw) > escape*maxUnknownName {
		return nil, false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		name = raw[1 : len(raw)-1]
	} else {
		name, _ = jsontext.AppendUnquote(nil, raw)
	}
	return name, len(name) <= maxUnknownName
}

// decode decodes a body. Its errors are for the client.
func decode(body []byte, limits Limits) (request, error) {
	if !utf8.Valid(body) {
		return request{}, errNotUTF8
	}
	if core.TooDeep(body) {
		return request{}, errTooDeep
	}
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && jsontext.Kind(trimmed[0]) != jsontext.KindBeginObject {
		// Broken JSON is reported as such, and not as a value of the wrong type.
		if !jsontext.Value(body).IsValid() {
			return request{}, api.ErrNotJSON
		}
		return request{}, errNotAnObject
	}
	r, err := readBody(body, limits)
	if err != nil {
		// An escape of half a surrogate pair is no error, since a string in Python can contain it.
		if r, err = readBody(body, limits, jsontext.AllowInvalidUTF8(true)); err == nil {
			r.makeResultsWhole()
		}
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return request{}, api.BadRequestf("request body is not valid JSON at byte %d", syntax.ByteOffset)
	}
	if err != nil {
		return request{}, api.ErrNotJSON
	}
	return r, nil
}

func readBody(body []byte, limits Limits, options ...json.Options) (request, error) {
	r := request{
		Results: array[resultMembers]{limit: limits.Results, members: resultNames},
		Tools:   array[toolMembers]{limit: limits.Tools, members: toolNames},
		Files:   array[fileMembers]{limit: MaxFiles, members: fileNames},
	}
	// Of several equal names the last one counts, as in the JSON libraries of clients.
	options = append(options, jsontext.AllowDuplicateNames(true), json.WithUnmarshalers(json.UnmarshalFromFunc(sliceOf(body))))
	err := json.Unmarshal(body, &r, options...)
	return r, err
}

// makeResultsWhole replaces half a surrogate pair in a result by U+FFFD, since a program could not write it to a file.
// It overwrites the body, which takes no more room then, and whose hash is known already.
func (r *request) makeResultsWhole() {
	for i := range r.Results.entries {
		entry := &r.Results.entries[i]
		for _, value := range []*jsontext.Value{&entry.Result, &entry.ErrorMessage, &entry.Guessed} {
			if len(*value) == 0 || value.IsValid(jsontext.AllowDuplicateNames(true)) {
				continue
			}
			// It is JSON, so there is no error.
			_ = value.Format(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(false))
		}
	}
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

// unmarshal reads a value that is a part of a body.
func unmarshal(value jsontext.Value, into any) error {
	return json.Unmarshal(value, into, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
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
