package librechat

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/api"
)

// argsOf returns the arguments of a program. A single argument need not be in an array.
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
	// An argument of a process cannot contain a NUL.
	case !ok || strings.Contains(arg, "\x00"):
		return "", errArgs
	case len(arg) > maxArg:
		return "", api.BadRequestf("args[%d] is %d bytes, maximum is %d", i, len(arg), maxArg)
	}
	return arg, nil
}
