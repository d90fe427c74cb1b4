package mcptool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/engine/tools/source"
)

// A result is the answer to a call of a tool. The SDK's own type is not used, since it loses digits of large
// numbers and supports only some kinds of content.
type result struct {
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structuredContent"`
	IsError    bool              `json:"isError"`
	Type       string            `json:"resultType"`
	Requests   json.RawMessage   `json:"inputRequests"`
}

// value returns the value of an answer, as the program gets it, which has at most limit bytes.
func value(raw json.RawMessage, text bool, limit int64) (json.RawMessage, error) {
	v, err := valueOf(raw, text)
	if err == nil && int64(len(v)) > limit {
		return nil, &source.CallError{Message: fmt.Sprintf("the result of the tool has more than %d bytes", limit)}
	}
	return v, err
}

// valueOf returns the value of an answer, however large it is.
func valueOf(raw json.RawMessage, text bool) (json.RawMessage, error) {
	var r result
	if !jsontext.Value(raw).IsValid() {
		return nil, &source.CallError{Message: "the result of the tool is not valid JSON"}
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, &source.CallError{Message: "the result of the tool is not as the protocol says", Err: err}
	}
	if r.Type == "input_required" || len(r.Requests) > 0 && string(r.Requests) != "null" {
		return nil, &source.CallError{Message: "the tool asks for input, which this server does not give to MCP servers", Unknown: true}
	}
	texts, onlyText := textsOf(r.Content)
	switch {
	case r.IsError:
		message := words(strings.Join(texts, "\n"))
		if message == "" {
			message = "the tool has failed and said no reason"
		}
		return nil, &source.CallError{Message: message}
	case len(r.Structured) > 0 && string(r.Structured) != "null":
		return shallow(r.Structured)
	case len(r.Content) == 1 && onlyText:
		if t := bytes.TrimSpace([]byte(texts[0])); !text && len(t) > 0 && (t[0] == '{' || t[0] == '[') && jsontext.Value(t).IsValid() && !tooDeep(t) {
			return t, nil
		}
		return json.Marshal(texts[0])
	case r.Content == nil:
		return json.RawMessage("[]"), nil
	default:
		list, err := json.Marshal(r.Content)
		if err != nil {
			return nil, err
		}
		return shallow(list)
	}
}

// shallow returns a value unless it is nested too deep for Python.
func shallow(v json.RawMessage) (json.RawMessage, error) {
	if tooDeep(v) {
		return nil, &source.CallError{Message: fmt.Sprintf("the result of the tool is nested too deep: the limit is %d levels", MaxDepth)}
	}
	return v, nil
}

// tooDeep reports whether JSON, which is valid, has more than MaxDepth levels.
func tooDeep(v []byte) bool {
	// Counting brackets settles most cases.
	if bytes.Count(v, []byte{'['})+bytes.Count(v, []byte{'{'}) <= MaxDepth {
		return false
	}
	d := jsontext.NewDecoder(bytes.NewReader(v))
	for d.StackDepth() <= MaxDepth {
		if _, err := d.ReadToken(); err != nil {
			return false // It is the end.
		}
	}
	return true
}

// textsOf returns the texts among blocks of content, and whether there is nothing else.
func textsOf(content []json.RawMessage) (texts []string, only bool) {
	only = true
	for _, raw := range content {
		var b struct {
			Type string  `json:"type"`
			Text *string `json:"text"`
		}
		if json.Unmarshal(raw, &b) != nil || b.Type != "text" || b.Text == nil {
			only = false
			continue
		}
		texts = append(texts, *b.Text)
	}
	return texts, only
}
