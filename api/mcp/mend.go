package mcp

import (
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	gojson "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var (
	// bareKey matches the name of a toolset, or of a tool as toolset.tool.
	bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_.-]+)?$`)
	digits  = regexp.MustCompile(`^[0-9]{1,15}$`)
)

// mend returns arguments in which some values have the type that the argument wants, if only their form is wrong:
// clients turn lists and numbers into strings at times, whatever the model has written, and some languages write
// whole numbers with a decimal point. of is the type of the arguments. It returns false if it has changed nothing.
func mend(arguments []byte, of reflect.Type) ([]byte, bool) {
	var given map[string]jsontext.Value
	if gojson.Unmarshal(arguments, &given) != nil {
		return nil, false
	}
	mended := false
	for field := range of.Fields() {
		name := field.Tag.Get("json")
		value, there := given[name]
		if !there || name == "" {
			continue
		}
		kind := field.Type.Kind()
		if kind == reflect.Pointer {
			kind = field.Type.Elem().Kind()
		}
		var better jsontext.Value
		switch kind { //nolint:exhaustive // values of other kinds stay as they are
		case reflect.Slice:
			better = asList(value)
		case reflect.Int, reflect.Int64:
			better = asWhole(value)
		}
		if better != nil {
			given[name], mended = better, true
		}
	}
	if !mended {
		return nil, false
	}
	text, err := gojson.Marshal(given)
	return text, err == nil
}

// asList returns the list that a string contains as JSON, or a list of the name that is all of the string, or nil.
func asList(value jsontext.Value) jsontext.Value {
	text, ok := stringOf(value)
	text = strings.TrimSpace(text)
	list := jsontext.Value(text)
	switch {
	case !ok:
		return nil
	case strings.HasPrefix(text, "[") && list.IsValid():
		return list
	case bareKey.MatchString(text):
		return jsontext.Value(`["` + text + `"]`)
	}
	return nil
}

// asWhole returns the whole number that a string of digits or a number such as 5000.0 stands for, or nil.
func asWhole(value jsontext.Value) jsontext.Value {
	if text, ok := stringOf(value); ok {
		if text = strings.TrimSpace(text); digits.MatchString(text) {
			number, err := strconv.ParseInt(text, 10, 64)
			if err == nil {
				return jsontext.Value(strconv.FormatInt(number, 10))
			}
		}
		return nil
	}
	const most = 1 << 53
	number, err := strconv.ParseFloat(string(value), 64)
	if value.Kind() != jsontext.KindNumber || err != nil || number != math.Trunc(number) || math.Abs(number) > most {
		return nil
	}
	return jsontext.Value(strconv.FormatInt(int64(number), 10))
}

// stringOf returns the text of a JSON string.
func stringOf(value jsontext.Value) (text string, ok bool) {
	return text, value.Kind() == jsontext.KindString && gojson.Unmarshal(value, &text) == nil
}
