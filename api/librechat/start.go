package librechat

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/engine"
	"fermata/engine/files"
	"fermata/stubs"
)

// maxToolName is the longest name of a tool, in characters. The names are kept with the
// execution.
const maxToolName = 256

// A program is the part of a start that the two paths read in different ways.
type program struct {
	// callsTools says that the program may call tools.
	callsTools bool
	tools      []stubs.Tool
	args       []string
	timeout    time.Duration
	mode       engine.Mode
}

// startOf returns what a request asks for, or refuses it. It notes the session for the
// answer as soon as the client may be told of it.
func (p *programs) startOf(c echo.Context, r received, read func(request) (program, error)) (engine.Start, error) {
	who := api.PrincipalOf(c)
	session, given, err := sessionOf(r.body)
	if err != nil {
		return engine.Start{}, err
	}
	if given {
		api.SetSession(c, session)
	}
	program, err := read(r.body)
	if err != nil {
		return engine.Start{}, err
	}
	references, err := p.referencesOf(r.body.Files, who, program.callsTools)
	if err != nil {
		return engine.Start{}, err
	}
	api.SetSession(c, session)
	inputs, scope, session, err := p.inputsOf(c.Request().Context(), who, session, given, references)
	if err != nil {
		return engine.Start{}, err
	}
	api.SetSession(c, session)
	return engine.Start{
		Principal: who.ID,
		Session:   session,
		Code:      json.RawMessage(r.body.Code),
		Tools:     program.tools,
		Args:      program.args,
		Timeout:   program.timeout,
		Mode:      program.mode,
		Request:   r.hash,
		RequestID: r.id,
		Key:       r.key,
		Inputs:    inputs,
		Scope:     scope,
	}, nil
}

// toolProgram reads a program that calls tools.
func (p *programs) toolProgram(r request) (program, error) {
	tools, err := toolsOf(r.Tools, p.limits.Tools)
	if err != nil {
		return program{}, err
	}
	timeout, err := milliseconds(r.Timeout)
	if err != nil {
		return program{}, err
	}
	if code, _ := unquote(r.Code); strings.TrimSpace(code) == "" {
		return program{}, errCode
	}
	for i, t := range tools {
		switch {
		case t.Name == "":
			return program{}, api.BadRequestf("tools[%d].name must be a non-empty string", i)
		case utf8.RuneCountInString(t.Name) > maxToolName:
			return program{}, api.BadRequestf("tools[%d].name must have at most %d characters", i, maxToolName)
		}
	}
	budget, err := budgetOf(timeout)
	if err != nil {
		return program{}, err
	}
	language := languageOf(r)
	mode, ok := modeOf(language)
	// The contract has no "sh" here.
	if !ok || language == "sh" {
		return program{}, api.BadRequest(`Unsupported language "` + language + `"; supported values are "python" and "bash"`)
	}
	return program{callsTools: true, tools: tools, timeout: budget, mode: mode}, nil
}

// plainProgram reads a program without tools.
func (p *programs) plainProgram(r request) (program, error) {
	code, ok := unquote(r.Code)
	if !ok {
		return program{}, errCode
	}
	timeout, err := milliseconds(r.Timeout)
	if err != nil {
		return program{}, err
	}
	args, err := argsOf(r.Args)
	if err != nil {
		return program{}, err
	}
	if strings.TrimSpace(code) == "" {
		return program{}, errNoCode
	}
	language := languageOf(r)
	if isNull(r.Lang) && isNull(r.Language) || language == "" {
		return program{}, errNoLanguage
	}
	mode, ok := modeOf(language)
	if !ok {
		return program{}, api.BadRequest("Unsupported language: " + language)
	}
	budget, err := budgetOf(timeout)
	return program{args: args, timeout: budget, mode: mode}, err
}

// modeOf returns how programs in a language are run.
func modeOf(language string) (mode engine.Mode, ok bool) {
	switch language {
	case "python", "py":
		return engine.Python, true
	case "bash", "sh":
		return engine.Bash, true
	}
	return "", false
}

func toolsOf(list array[toolMembers], limit int) ([]stubs.Tool, error) {
	switch {
	case list.given() && list.kind != jsontext.KindBeginArray:
		return nil, errTools
	case list.count > limit:
		return nil, api.BadRequestf("Too many tools provided (%d). Maximum is %d.", list.count, limit)
	case list.strays:
		return nil, api.BadRequestf("tools[%d] must be an object", list.stray)
	}
	tools := make([]stubs.Tool, 0, len(list.entries))
	for i, t := range list.entries {
		// A name that is no string is as good as none.
		name, _ := unquote(t.Name)
		description, ok := unquote(t.Description)
		if !ok && !isNull(t.Description) {
			return nil, api.BadRequestf("tools[%d].description must be a string", i)
		}
		tools = append(tools, stubs.Tool{Name: name, Description: description, Parameters: json.RawMessage(t.Parameters)})
	}
	return tools, nil
}

// milliseconds returns the run budget that a request asks for, with fractions rounded up.
func milliseconds(timeout jsontext.Value) (float64, error) {
	if timeout == nil {
		return float64(api.DefaultTimeout.Milliseconds()), nil
	}
	if timeout.Kind() != jsontext.KindNumber {
		return 0, errTimeout
	}
	// A number too large for a float becomes an infinity, which is out of range.
	ms, _ := strconv.ParseFloat(string(timeout), 64)
	return math.Ceil(ms), nil
}

// budgetOf returns the run budget of so many milliseconds, if a client may have it.
func budgetOf(milliseconds float64) (time.Duration, error) {
	switch {
	case milliseconds <= 0:
		return 0, errTimeout
	case milliseconds < float64(api.MinTimeout.Milliseconds()), milliseconds > float64(api.MaxTimeout.Milliseconds()):
		return 0, errTimeoutRange
	}
	return time.Duration(milliseconds) * time.Millisecond, nil
}

// languageOf returns the language of a program. "language" takes precedence over "lang".
func languageOf(r request) string {
	for _, v := range []jsontext.Value{r.Language, r.Lang} {
		if !isNull(v) {
			return spelled(v)
		}
	}
	return "python"
}

// sessionOf returns the session that a request names, or a new one if the request names
// none that could be ours.
func sessionOf(r request) (id string, given bool, err error) {
	id, ok := unquote(r.Session)
	switch {
	case !ok && !isNull(r.Session):
		return "", false, errSession
	case files.ValidID(id):
		return id, true, nil
	}
	return files.NewID(), false, nil
}
