package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"fermata/engine"
)

// What a program may be given as its arguments. One of more bytes, with the NUL behind
// it, the kernel would not take.
const (
	maxArgs     = 1000
	maxArg      = 128<<10 - 1
	maxArgBytes = 1 << 20
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
	if v.Kind() != jsontext.KindBeginArray {
		arg, err := argOf(0, v)
		return []string{arg}, err
	}
	d := jsontext.NewDecoder(bytes.NewReader(v), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadToken(); err != nil {
		return nil, errArgs
	}
	var args []string
	size := 0
	for d.PeekKind() != jsontext.KindEndArray {
		if len(args) == maxArgs {
			return nil, errTooManyArgs
		}
		value, err := d.ReadValue()
		if err != nil {
			return nil, errArgs
		}
		arg, err := argOf(len(args), value)
		if err != nil {
			return nil, err
		}
		if size += len(arg); size > maxArgBytes {
			return nil, errLargeArgs
		}
		args = append(args, arg)
	}
	return args, nil
}

// argOf returns the i-th argument.
func argOf(i int, v jsontext.Value) (string, error) {
	arg, ok := unquote(v)
	switch {
	// A process cannot be given a NUL.
	case !ok || strings.Contains(arg, "\x00"):
		return "", errArgs
	case len(arg) > maxArg:
		return "", argTooLarge(i, len(arg))
	}
	return arg, nil
}
