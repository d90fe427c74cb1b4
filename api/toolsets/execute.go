package toolsets

import (
	"encoding/json"
	"errors"
	"io"

	v2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/engine"
)

// A callRequest is the decoded body of a request for a call. The second name of each member means the
// same as the first one.
type callRequest struct {
	Toolset    jsontext.Value `json:"toolset"`
	ToolsetKey jsontext.Value `json:"toolsetKey"`
	Tool       jsontext.Value `json:"tool"`
	ToolName   jsontext.Value `json:"toolName"`
	Input      jsontext.Value `json:"input"`
	Params     jsontext.Value `json:"params"`
	// Unknown are the other members, which pass.
	Unknown map[string]jsontext.Value `json:",embed"`
}

// inputSlips are names that others have for the input. A call may not be made without its input.
var inputSlips = []string{"arguments", "args", "inputs", "parameters", "param"} //nolint:gochecknoglobals // it is a constant

// A callAnswer is the answer with the result of a call.
type callAnswer struct {
	OK     bool   `json:"ok"`
	CallID string `json:"call_id"`
	// Output is there if the call has succeeded, also if it is null.
	Output jsontext.Value `json:"output,omitzero"`
	Error  string         `json:"error,omitempty"`
	Took   int64          `json:"took_ms"`
	Cost   int64          `json:"cost"`
}

// execute makes one call without a program.
func (h *handlers) execute(c echo.Context) error {
	call := engine.ToolCall{Principal: api.PrincipalOf(c).ID, Began: func(execution string) { api.SetExecution(c, execution) }}
	var err error
	if call.Parent, err = api.ParentOf(c.Request().Header); err != nil {
		return err
	}
	if call.Depth, err = api.DepthOf(c.Request().Header); err != nil {
		return err
	}
	body, err := h.bodies.ReadJSON(c, h.limit, io.Discard)
	if err != nil {
		return err
	}
	if err := readCall(body, &call); err != nil {
		return err
	}
	result, err := h.calls.CallTool(c.Request().Context(), call)
	if err != nil {
		return err
	}
	return h.answer(c, callAnswer{
		OK: result.Error == "", CallID: result.ID, Output: jsontext.Value(result.Output), Error: result.Error, Took: result.Took.Milliseconds(), Cost: result.Cost,
	})
}

// readCall reads the body of a request for a call.
func readCall(body []byte, call *engine.ToolCall) error {
	if jsontext.Value(body).Kind() != jsontext.KindBeginObject {
		return api.BadRequest("request body must be a JSON object")
	}
	var r callRequest
	if err := v2.Unmarshal(body, &r); err != nil {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return api.BadRequest("request body has an object with two members of one name")
		}
		return api.ErrNotJSON
	}
	var err error
	if call.Toolset, err = nameIn("toolset", r.Toolset, "toolsetKey", r.ToolsetKey); err != nil {
		return err
	}
	if call.Tool, err = nameIn("tool", r.Tool, "toolName", r.ToolName); err != nil {
		return err
	}
	input, name, err := either("input", r.Input, "params", r.Params)
	if err != nil {
		return err
	}
	for _, slip := range inputSlips {
		if _, given := r.Unknown[slip]; given {
			return api.BadRequestf("%q is not known; did you mean input?", slip)
		}
	}
	switch input.Kind() {
	case jsontext.KindInvalid, jsontext.KindNull:
		input = jsontext.Value("{}")
	case jsontext.KindBeginObject:
	default:
		return api.BadRequestf("%s must be an object", name)
	}
	call.Input = json.RawMessage(input)
	return nil
}

// either returns the value of a member that may have either of two names, and the name that it has.
func either(first string, a jsontext.Value, second string, b jsontext.Value) (value jsontext.Value, name string, err error) {
	switch {
	case a != nil && b != nil:
		return nil, "", api.BadRequestf("%s and %s mean the same: send one of them", first, second)
	case b != nil:
		return b, second, nil
	default:
		return a, first, nil
	}
}

// nameIn returns a member that is a name.
func nameIn(first string, a jsontext.Value, second string, b jsontext.Value) (string, error) {
	value, name, err := either(first, a, second, b)
	if err != nil {
		return "", err
	}
	if value == nil {
		return "", api.BadRequestf("Missing required field: %s", name)
	}
	var text string
	if value.Kind() != jsontext.KindString || v2.Unmarshal(value, &text) != nil || text == "" || len(text) > maxName {
		return "", api.BadRequestf("%s must be a string of 1 to 193 bytes", name)
	}
	return text, nil
}
