package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/go-playground/validator/v10"
	"github.com/go-playground/validator/v10/non-standard/validators"

	"fermata/engine"
	"fermata/engine/files"
	"fermata/stubs"
)

var callIDPattern = regexp.MustCompile(`^call_\d{3,6}$`)

// A program is an initial request whose JSON types are right. Its tags hold the
// rules on values; refusedField has their texts.
type program struct {
	Code     string       `name:"code"     validate:"notblank"`
	Tools    []definition `name:"tools"    validate:"dive"`
	Timeout  float64      `name:"timeout"  validate:"gt=0,budget"`
	Language string       `name:"language" validate:"oneof=python py bash"`
}

type definition struct {
	// It is kept with the execution, which has up to Limits.Tools of them.
	Name string `name:"name" validate:"required,max=256"`
}

// newValidator returns a validator that knows the tags above.
func newValidator() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string { return f.Tag.Get("name") })
	v.RegisterAlias("budget", fmt.Sprintf("min=%d,max=%d", MinTimeout.Milliseconds(), MaxTimeout.Milliseconds()))
	if err := v.RegisterValidation("notblank", validators.NotBlank); err != nil {
		panic(err) // Only an empty name is an error.
	}
	return v
}

// start returns what an initial request asks for, or a refusal. Principal and
// Session are for the caller to set.
func (s *server) start(r request) (engine.Start, error) {
	tools, err := s.tools(r.Tools)
	if err != nil {
		return engine.Start{}, err
	}
	timeout, err := milliseconds(r.Timeout)
	if err != nil {
		return engine.Start{}, err
	}
	code, _ := unquote(r.Code)
	p := program{Code: code, Timeout: timeout, Language: languageOf(r)}
	for _, t := range tools {
		p.Tools = append(p.Tools, definition{t.Name})
	}
	if err := s.check(p); err != nil {
		return engine.Start{}, err
	}
	return engine.Start{
		Code:    json.RawMessage(r.Code),
		Tools:   tools,
		Timeout: time.Duration(timeout) * time.Millisecond,
		Mode:    modeOf(p.Language),
	}, nil
}

// check returns the refusal of the first rule that a request breaks.
func (s *server) check(r any) error {
	if refused, ok := errors.AsType[validator.ValidationErrors](s.validate.Struct(r)); ok {
		return refusedField(refused[0])
	}
	return nil
}

// modeOf returns how programs in a language are run.
func modeOf(language string) engine.Mode {
	switch language {
	case "bash", "sh":
		return engine.Bash
	}
	return engine.Python
}

func (s *server) tools(list array[toolMembers]) ([]stubs.Tool, error) {
	switch limit := s.options.Limits.Tools; {
	case list.given() && list.kind != jsontext.KindBeginArray:
		return nil, errTools
	case list.count > limit:
		return nil, tooManyTools(list.count, limit)
	case list.strays:
		return nil, toolNotObject(list.stray)
	}
	tools := make([]stubs.Tool, 0, len(list.entries))
	for i, t := range list.entries {
		// A name that is no string is as good as none.
		name, _ := unquote(t.Name)
		description, ok := unquote(t.Description)
		if !ok && !isNull(t.Description) {
			return nil, toolDescription(i)
		}
		tools = append(tools, stubs.Tool{Name: name, Description: description, Parameters: json.RawMessage(t.Parameters)})
	}
	return tools, nil
}

// milliseconds returns the run budget, fractions rounded up.
func milliseconds(timeout jsontext.Value) (float64, error) {
	if timeout == nil {
		return float64(DefaultTimeout.Milliseconds()), nil
	}
	if timeout.Kind() != jsontext.KindNumber {
		return 0, errTimeout
	}
	// A number too large for a float becomes an infinity, which is out of range.
	ms, _ := strconv.ParseFloat(string(timeout), 64)
	return math.Ceil(ms), nil
}

// languageOf returns the language of a program: language counts before lang.
func languageOf(r request) string {
	for _, v := range []jsontext.Value{r.Language, r.Lang} {
		if !isNull(v) {
			return spelled(v)
		}
	}
	return "python"
}

// sessionOf returns the session that a request names, or a new one if it names
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

// resume returns what a continuation asks for, or a refusal. Principal and
// Request are for the caller to set.
func (s *server) resume(r request) (engine.Resume, error) {
	token, _ := unquote(r.Token)
	if token == "" {
		return engine.Resume{}, errToken
	}
	limits, list := s.options.Limits, r.Results
	switch {
	case list.kind != jsontext.KindBeginArray:
		return engine.Resume{}, errResults
	case list.count == 0:
		return engine.Resume{}, errNoResults
	case list.count > limits.Results:
		return engine.Resume{}, tooManyResults(list.count, limits.Results)
	case list.strays:
		return engine.Resume{}, errResultNoObject
	}

	results := make([]engine.Result, 0, len(list.entries))
	seen := make(map[string]bool, len(list.entries))
	for _, entry := range list.entries {
		result, err := resultOf(entry)
		if err != nil {
			return engine.Resume{}, err
		}
		id, size := result.CallID, len(result.Value)
		if seen[id] {
			return engine.Resume{}, resultTwice(id)
		}
		seen[id] = true
		if size > limits.ResultBytes {
			return engine.Resume{}, resultTooLarge(id, size, limits.ResultBytes)
		}
		results = append(results, result)
	}
	return engine.Resume{Token: token, Results: results}, nil
}

// resultOf returns one result. A member that is missing is taken as null, which
// is what clients mean.
func resultOf(entry resultMembers) (engine.Result, error) {
	id, ok := unquote(entry.CallID)
	if !ok || !callIDPattern.MatchString(id) {
		return engine.Result{}, resultCallID(spelled(entry.CallID))
	}
	result := engine.Result{CallID: id, Value: json.RawMessage(entry.Result)}
	switch {
	case entry.IsError == nil || entry.IsError.Kind() == jsontext.KindFalse:
	case entry.IsError.Kind() == jsontext.KindTrue:
		result.Failed = true
	default:
		return engine.Result{}, resultIsError(id)
	}
	message, ok := unquote(entry.ErrorMessage)
	if !ok && !isNull(entry.ErrorMessage) {
		return engine.Result{}, resultErrorMessage(id)
	}
	if result.Failed && message != "" {
		result.Message = json.RawMessage(entry.ErrorMessage)
	}
	return result, nil
}

// isNull reports whether a member is null or absent.
func isNull(v jsontext.Value) bool { return v == nil || v.Kind() == jsontext.KindNull }

// spelled returns a client's value for use in a text about it, cut short.
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
