package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/engine/tools/envelope"
	"fermata/engine/tools/source"
)

// unwrap takes the result out of the envelope {ok, error, ret}, if the rules of the tool say that it answers
// with one. Then the pointer is relative to ret.
func (t tool) unwrap(answer json.RawMessage, pointer string) (json.RawMessage, error) {
	if !t.Rules.Envelope {
		return answer, nil
	}
	result, err := open(answer)
	if err == nil {
		result, err = at(result, pointer)
	}
	if failed, ok := errors.AsType[*source.CallError](err); ok && failed.Unknown {
		// For an idempotent tool it does not matter whether the call has taken effect.
		if failed.Unknown = !t.Idempotent; failed.Unknown {
			failed.Message += textUnsureAfter
		}
	}
	return result, err
}

// open returns the content of an envelope, or the failure of the call. If the answer is not an envelope, the
// call was made, but nobody knows its result.
func open(answer json.RawMessage) (json.RawMessage, error) {
	result, err := envelope.Open(answer)
	if told, ok := errors.AsType[*envelope.FailedError](err); ok {
		failed := failure(nil, "%s", told.Message)
		failed.Details = &told.Details
		return nil, failed
	}
	if err != nil {
		failed := failure(nil, textNoEnvelope, err)
		failed.Unknown = true
		return nil, failed
	}
	return result, nil
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
