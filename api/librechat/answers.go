package api

import (
	"bytes"
	"net/http"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/engine"
)

// encodeOutcome returns status and body for an outcome. Equal outcomes have equal
// bytes, which is what a client that repeats a request gets.
func encodeOutcome(outcome engine.Outcome, style ErrorStyle) (status int, body []byte, err error) {
	var o object
	switch outcome.State {
	case engine.Paused:
		o.text("status", "tool_call_required")
		o.text("session_id", outcome.Session)
		o.text("continuation_token", outcome.Token)
		o.raw("tool_calls", encodeList(outcome.Calls, encodeCall))
		return http.StatusOK, o.end(), nil
	case engine.Completed:
		o.text("status", "completed")
		o.text("session_id", outcome.Session)
		o.text("stdout", outcome.Stdout)
		o.text("stderr", outcome.Stderr)
		o.raw("files", encodeList(outcome.Files, encodeOutput))
		o.leftovers(outcome)
		return http.StatusOK, o.end(), nil
	default:
		return encodeEnding(outcome, style)
	}
}

// encodeEnding is encodeOutcome for an execution that ended without being completed.
func encodeEnding(outcome engine.Outcome, style ErrorStyle) (status int, body []byte, err error) {
	status, text, err := endingOf(outcome, style)
	if err != nil {
		return 0, nil, err
	}
	var o object
	o.text("status", "error")
	o.text("session_id", outcome.Session)
	o.text("error", text)
	o.text("stdout", outcome.Stdout)
	o.text("stderr", outcome.Stderr)
	if len(outcome.Files) > 0 {
		o.raw("files", encodeList(outcome.Files, encodeOutput))
	}
	o.leftovers(outcome)
	return status, o.end(), nil
}

// encodeCall writes a call with its input as it came: decoding and
// encoding it again would change numbers and strings.
func encodeCall(call engine.Call) []byte {
	var o object
	o.text("id", call.ID)
	o.text("name", call.Name)
	o.raw("input", call.Input)
	return o.end()
}

// encodeList writes a JSON array of what encode makes of the items.
func encodeList[T any](items []T, encode func(T) []byte) []byte {
	list := []byte{'['}
	for i, item := range items {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, encode(item)...)
	}
	return append(list, ']')
}

// An object is a JSON object being written, member by member.
type object []byte

func (o *object) member(name string) {
	if len(*o) == 0 {
		*o = append(*o, '{')
	} else {
		*o = append(*o, ',')
	}
	*o = append(append(append(*o, '"'), name...), '"', ':')
}

// text adds a string. Bytes that are not UTF-8 are replaced.
func (o *object) text(name, value string) {
	o.member(name)
	// The only error is about the bytes it has replaced.
	*o, _ = jsontext.AppendQuote(*o, value)
}

// raw adds a value that is JSON already.
func (o *object) raw(name string, value []byte) {
	o.member(name)
	*o = append(*o, value...)
}

// end closes the object and returns it as valid UTF-8.
func (o *object) end() []byte {
	body := append(*o, '}')
	if !utf8.Valid(body) {
		body = bytes.ToValidUTF8(body, []byte(string(utf8.RuneError)))
	}
	return body
}
