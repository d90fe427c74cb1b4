package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"fermata/engine"
)

// A plainProgram is a request to run a program without tools. Its tags hold the rules
// on values; refusedField has their texts.
type plainProgram struct {
	Code     string  `name:"code"    validate:"required"`
	Language string  `name:"lang"    validate:"required,oneof=py python bash sh"`
	Timeout  float64 `name:"timeout" validate:"gt=0,budget"`
}

// exec runs a program without tools to its end.
func (s *server) exec(c echo.Context) error {
	header := c.Request().Header
	if err := checkRouting(header); err != nil {
		return err
	}
	if header.Get(workspaceHeader) != "" {
		return errWorkspace
	}
	p, err := s.receive(c, execPath+"\n")
	if err != nil {
		return err
	}
	outcome, err := s.begin(c, p, false, s.plain)
	if err != nil {
		return err
	}
	answer, err := encodePlain(outcome)
	if err != nil {
		return err
	}
	return write(c, http.StatusOK, answer)
}

// plain returns what a request without tools asks for, or a refusal. Principal,
// Session and files are for the caller to set.
func (s *server) plain(r request) (engine.Start, error) {
	code, ok := unquote(r.Code)
	if !ok {
		return engine.Start{}, errCode
	}
	timeout, err := milliseconds(r.Timeout)
	if err != nil {
		return engine.Start{}, err
	}
	args, err := argsOf(r.Args)
	if err != nil {
		return engine.Start{}, err
	}
	p := plainProgram{Code: strings.TrimSpace(code), Timeout: timeout}
	if !isNull(r.Lang) || !isNull(r.Language) {
		p.Language = languageOf(r)
	}
	if err := s.check(p); err != nil {
		return engine.Start{}, err
	}
	return engine.Start{
		Code:    json.RawMessage(r.Code),
		Args:    args,
		Timeout: time.Duration(timeout) * time.Millisecond,
		Mode:    modeOf(p.Language),
	}, nil
}

// argsOf returns the arguments of a program, of which a single one may stand for itself.
func argsOf(v jsontext.Value) ([]string, error) {
	if isNull(v) {
		return nil, nil
	}
	values := []jsontext.Value{v}
	if v.Kind() == jsontext.KindBeginArray {
		if err := jsonv2.Unmarshal(v, &values, jsontext.AllowInvalidUTF8(true)); err != nil {
			return nil, errArgs
		}
	}
	args := make([]string, len(values))
	for i, value := range values {
		arg, ok := unquote(value)
		// A process cannot be given a NUL.
		if !ok || strings.Contains(arg, "\x00") {
			return nil, errArgs
		}
		args[i] = arg
	}
	return args, nil
}
