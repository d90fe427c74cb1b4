package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/engine/tools/source"
)

// unwrap takes the result out of the envelope {ok, error, ret}, if the tool promises one. The pointer
// then leads to the result within ret.
func (t tool) unwrap(answer json.RawMessage, pointer string) (json.RawMessage, error) {
	if !t.Rules.Envelope {
		return answer, nil
	}
	result, err := open(answer)
	if err == nil {
		result, err = at(result, pointer)
	}
	if failed, ok := errors.AsType[*source.CallError](err); ok && failed.Unknown {
		// Of a call that may be repeated it does not matter.
		if failed.Unknown = !t.Idempotent; failed.Unknown {
			failed.Message += textUnsureAfter
		}
	}
	return result, err
}

// open returns what is in an envelope. Names are compared as they are.
func open(answer json.RawMessage) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(answer, &members) != nil || members == nil {
		return nil, wrongEnvelope("it is no object")
	}
	switch string(members["ok"]) {
	case "true":
		if ret, found := members["ret"]; found {
			return ret, nil
		}
		return json.RawMessage("null"), nil
	case "false":
		return nil, failure(nil, "%s", told(members["error"]))
	case "":
		return nil, wrongEnvelope("it has no member ok")
	default:
		return nil, wrongEnvelope("its member ok is neither true nor false")
	}
}

// wrongEnvelope is the failure of a call whose answer says that the call was made, but not what came
// of it.
func wrongEnvelope(what string) error {
	failed := failure(nil, textNoEnvelope, what)
	failed.Unknown = true
	return failed
}

// told returns what the error in an envelope says: a text, or an object with a message, or any JSON.
func told(raw json.RawMessage) string {
	var text string
	var object struct{ Message string }
	switch {
	case len(raw) == 0, string(raw) == "null":
		return textNotOK
	case json.Unmarshal(raw, &text) == nil:
	case json.Unmarshal(raw, &object) == nil && object.Message != "":
		text = object.Message
	default:
		text = string(raw)
	}
	if text = strings.TrimSpace(text); text == "" {
		return textNotOK
	}
	return text
}

// at returns the part of a value to which a JSON Pointer leads.
func at(value json.RawMessage, pointer string) (json.RawMessage, error) {
	for token := range jsontext.Pointer(pointer).Tokens() {
		part, err := member(value, token)
		if err != nil {
			failed := failure(err, textNoPart, quoted(pointer))
			failed.Unknown = true
			return nil, failed
		}
		value = part
	}
	return value, nil
}

// member returns a member of an object, or an element of a list.
func member(value json.RawMessage, token string) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	var list []json.RawMessage
	if json.Unmarshal(value, &object) == nil && object != nil {
		if part, found := object[token]; found {
			return part, nil
		}
		return nil, errors.New("an object has no such member")
	}
	if err := json.Unmarshal(value, &list); err != nil {
		return nil, fmt.Errorf("a value has no members: %w", err)
	}
	i, err := strconv.ParseUint(token, 10, 31)
	if err != nil || int(i) >= len(list) || strconv.FormatUint(i, 10) != token {
		return nil, errors.New("a list has no such element")
	}
	return list[i], nil
}
