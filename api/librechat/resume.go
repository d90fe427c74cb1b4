package librechat

import (
	"encoding/json"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/continuation"
	"fermata/engine"
	"fermata/engine/core"
)

var callIDPattern = regexp.MustCompile(`^call_\d{3,6}$`)

// resumeOf returns the continuation that a request asks for, or refuses it.
func (p *programs) resumeOf(c echo.Context, r received) (engine.Resume, error) {
	token, _ := unquote(r.body.Token)
	if token == "" {
		return engine.Resume{}, continuation.ErrToken
	}
	list := r.body.Results
	switch {
	case list.kind != jsontext.KindBeginArray:
		return engine.Resume{}, errResults
	case list.count > p.limits.Results:
		return engine.Resume{}, api.BadRequestf("Too many tool_results provided (%d). Maximum is %d.", list.count, p.limits.Results)
	case list.strays:
		return engine.Resume{}, errResultNoObject
	}

	results := make([]core.Result, 0, len(list.entries))
	seen := make(map[string]bool, len(list.entries))
	for _, entry := range list.entries {
		result, err := resultOf(entry)
		if err != nil {
			return engine.Resume{}, err
		}
		id, size := result.CallID, len(result.Value)
		if seen[id] {
			return engine.Resume{}, api.BadRequest("Duplicate call_id in tool_results: " + id)
		}
		seen[id] = true
		if size > p.limits.ResultBytes {
			return engine.Resume{}, api.BadRequestf("tool_results[%s].result is %d bytes, exceeds per-result cap %d", id, size, p.limits.ResultBytes)
		}
		results = append(results, result)
	}
	return engine.Resume{
		Principal: api.PrincipalOf(c).ID,
		Token:     token,
		Results:   results,
		Request:   r.hash,
		RequestID: r.id,
	}, nil
}

// resultOf returns one result. A missing member counts as null, as clients mean it.
func resultOf(entry resultMembers) (core.Result, error) {
	id, ok := unquote(entry.CallID)
	if !ok || !callIDPattern.MatchString(id) {
		return core.Result{}, api.BadRequestf(`tool_results[].call_id must match /^call_\d{3,6}$/, got: %s`, spelled(entry.CallID))
	}
	message, ok := unquote(entry.ErrorMessage)
	if !ok && !isNull(entry.ErrorMessage) {
		return core.Result{}, api.BadRequestf("tool_results[%s].error_message must be a string if present", id)
	}
	result := core.Result{CallID: id, Value: json.RawMessage(entry.Result)}
	switch {
	case entry.IsError == nil:
		// A tool that failed never succeeds because a member is missing.
		result.Failed = !isNull(entry.ErrorMessage) || !isNull(entry.Guessed)
	case entry.IsError.Kind() == jsontext.KindTrue:
		result.Failed = true
	case entry.IsError.Kind() != jsontext.KindFalse:
		return core.Result{}, api.BadRequestf("tool_results[%s].is_error must be a boolean if present", id)
	case message != "":
		return core.Result{}, api.BadRequestf("tool_results[%s] has is_error false and an error_message: if the tool failed, is_error must be true", id)
	}
	if result.Failed {
		result.Message = messageOf(entry)
	}
	return result, approvalIn(entry, id, &result)
}

// messageOf returns the message of a call that failed, or nil if the client has sent none.
func messageOf(entry resultMembers) json.RawMessage {
	for _, v := range []jsontext.Value{entry.ErrorMessage, entry.Guessed} {
		if text, _ := unquote(v); text != "" {
			return json.RawMessage(v)
		}
	}
	return nil
}
