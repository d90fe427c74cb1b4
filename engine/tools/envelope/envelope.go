// Package envelope reads the envelopes {ok, error, ret} in which tools put their results.
package envelope

import (
	"cmp"
	"encoding/json"
	"maps"
	"strings"
	"unicode/utf8"
)

// maxWord is the maximum length of a code, and of the name of a place, in bytes.
const maxWord = 256

// notOK is the message of an error that has none.
const notOK = "the tool reports a failure"

// Details are what the error in an envelope has besides its message. Each member may be missing.
type Details struct {
	// Code is a word for the error, and Where the place where it occurred.
	Code  string `json:"code,omitempty"`
	Where string `json:"where,omitempty"`
	// Managed is true if the tool has handled the failure. Only the program gets it.
	Managed bool `json:"managed,omitempty"`
}

// A FailedError is the error of an envelope whose ok is false.
type FailedError struct {
	// Message is never empty.
	Message string
	Details
}

func (e *FailedError) Error() string { return e.Message }

// A NoneError says why a value is not an envelope.
type NoneError struct{ Problem string }

func (e *NoneError) Error() string { return e.Problem }

// Open returns the member ret of an envelope whose ok is true. The error is a *FailedError if ok is false,
// and a *NoneError if the value is not an envelope. The names of members are case-sensitive.
func Open(value json.RawMessage) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil || members == nil {
		return nil, &NoneError{"it is no object"}
	}
	switch string(members["ok"]) {
	case "true":
		if ret, found := members["ret"]; found {
			return ret, nil
		}
		return json.RawMessage("null"), nil
	case "false":
		return nil, told(members["error"])
	case "":
		return nil, &NoneError{"it has no member ok"}
	default:
		return nil, &NoneError{"its member ok is neither true nor false"}
	}
}

// told reads the error in an envelope, which is a text, an object with a message, or any other JSON.
func told(raw json.RawMessage) *FailedError {
	failed := &FailedError{}
	var members map[string]json.RawMessage
	switch text, isText := textIn(raw); {
	case len(raw) == 0, string(raw) == "null":
	case isText:
		failed.Message = text
	case json.Unmarshal(raw, &members) == nil:
		failed.Code, failed.Where = wordIn(members["code"]), wordIn(members["where"])
		failed.Managed = string(members["managed"]) == "true"
		if failed.Message, _ = textIn(members["message"]); strings.TrimSpace(failed.Message) == "" {
			failed.Message = failed.named(members)
		}
	default:
		failed.Message = string(raw)
	}
	if failed.Message = strings.TrimSpace(failed.Message); failed.Message == "" {
		failed.Message = notOK
	}
	return failed
}

// named returns a message for an error that has none. It never has the member managed, which is for programs
// and not for people.
func (e *FailedError) named(members map[string]json.RawMessage) string {
	told := maps.Clone(members)
	delete(told, "managed")
	_, isWord := textIn(told["code"])
	_, hasPlace := textIn(told["where"])
	switch {
	case len(told) == 0:
		return notOK
	case len(told) == 1 && isWord:
		return cmp.Or(e.Code, notOK)
	case len(told) == 2 && isWord && hasPlace && e.Code != "" && e.Where != "":
		return e.Code + " at " + e.Where
	}
	text, err := json.Marshal(told)
	if err != nil {
		return notOK
	}
	return string(text)
}

// textIn returns the text of a JSON string.
func textIn(raw json.RawMessage) (text string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return text, json.Unmarshal(raw, &text) == nil
}

// wordIn returns a word: the text of a JSON string, or a number as it is written. A long word is truncated.
func wordIn(raw json.RawMessage) string {
	word, isText := textIn(raw)
	if !isText && len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') {
		word = string(raw)
	}
	if word = strings.TrimSpace(word); len(word) <= maxWord {
		return word
	}
	end := maxWord
	for end > 0 && !utf8.RuneStart(word[end]) {
		end--
	}
	return word[:end]
}
