package schema

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestT22CanonicalForm shows that equal inputs have the same canonical form, however they are written.
func TestT22CanonicalForm(t *testing.T) {
	for _, test := range []struct{ raw, want string }{
		{` { "b" : 1 , "a" : [ 1.50, 1E3, -0, 9007199254740993, 0.10000000000000000000001 ] } `, `{"a":[1.50,1E3,-0,9007199254740993,0.10000000000000000000001],"b":1}`},
		{`"\u0041\/\u00e9\ud83d\ude00\u001f\u2028<>&"`, "\"A/é😀\\u001f\u2028<>&\""},
		{"{\"\\u0062\":2,\t\"a\":{\"z\":null,\"y\":true}}", `{"a":{"y":true,"z":null},"b":2}`},
		{`[]`, `[]`},
		{`123456789012345678901234567890`, `123456789012345678901234567890`},
	} {
		got, err := Canonical(json.RawMessage(test.raw))
		if err != nil || string(got) != test.want {
			t.Errorf("%s: got %s, %v, want %s", test.raw, got, err, test.want)
			continue
		}
		again, err := Canonical(got)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s: the canonical form of the canonical form is %s, %v", got, again, err)
		}
	}
	raw := json.RawMessage(`{"b":1, "a":2}`)
	if _, err := Canonical(raw); err != nil || string(raw) != `{"b":1, "a":2}` {
		t.Errorf("the input itself was changed: %s, %v", raw, err)
	}
}

// TestT23WhatLooksOtherThanItIs shows that texts that two readers could read differently are refused.
func TestT23WhatLooksOtherThanItIs(t *testing.T) {
	for name, test := range map[string]struct{ raw, want string }{
		"twins":                  {`{"a":1,"a":2}`, "the input is not strict JSON: two members of one object have the same name at a"},
		"twins by escapes":       {`{"x":[{"amount":1,"\u0061mount":2}]}`, "the input is not strict JSON: two members of one object have the same name at x[0].amount"},
		"half a pair":            {`{"a":"\ud800"}`, "the input is not strict JSON: a text has half of a surrogate pair"},
		"half a pair in a name":  {`{"\udc00":1}`, "the input is not strict JSON: a text has half of a surrogate pair"},
		"UTF-8":                  {"{\"a\":\"\xff\"}", "the input is not strict JSON: a text is not UTF-8"},
		"surrogates as bytes":    {"\"\xed\xa0\x80\"", "the input is not strict JSON: a text is not UTF-8"},
		"second value":           {`{} {}`, "the input is not strict JSON: it is broken or incomplete"},
		"more than a value":      {`{} x`, "the input is not strict JSON: it is broken or incomplete"},
		"NaN":                    {`[NaN]`, "the input is not strict JSON: it is broken or incomplete"},
		"byte order mark":        {"\ufeff{}", "the input is not strict JSON: it is broken or incomplete"},
		"comment":                {`{/**/}`, "the input is not strict JSON: it is broken or incomplete"},
		"nothing":                {``, "the input is not strict JSON: it is broken or incomplete"},
		"cut":                    {`{"a":`, "the input is not strict JSON: it is broken or incomplete"},
		"line end in a text":     {"\"a\nb\"", "the input is not strict JSON: it is broken or incomplete"},
		"leading zero":           {`01`, "the input is not strict JSON: it is broken or incomplete"},
		"deep":                   {strings.Repeat("[", 65) + strings.Repeat("]", 65), "the input has more than 64 levels of objects and lists"},
		"very deep":              {strings.Repeat(`{"a":`, 150_000), "the input has more than 64 levels of objects and lists"},
		"large":                  {`"` + strings.Repeat("a", MaxInput) + `"`, "the input has 1048578 bytes; at most 1048576 are allowed"},
		"many":                   {"[" + strings.Repeat("[],", 60_000) + "[]]", "the input has more than 100000 values"},
		"long number":            {strings.Repeat("9", 1001), "the input has a number of 1001 characters; at most 1000 are allowed"},
		"number beyond memory":   {`1e999999999`, "the input has a number with an exponent beyond 400"},
		"number below memory":    {`[1e-999999999]`, "the input has a number with an exponent beyond 400"},
		"exponent beyond bounds": {`1E+99999999999999999999999`, "the input has a number with an exponent beyond 400"},
		"blanks":                 {strings.Repeat(" ", MaxInput) + "1", "the input has 1048577 bytes; at most 1048576 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Canonical(json.RawMessage(test.raw))
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %.100s, %v, want an error that begins with %q", got, err, test.want)
			}
			s, err := Compile(json.RawMessage(`true`))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Check(json.RawMessage(test.raw)); err == nil {
				t.Error("Check has passed it")
			}
		})
	}
}

// FuzzCanonical looks for inputs whose canonical form has another meaning.
func FuzzCanonical(f *testing.F) {
	f.Add(`{"b":[1,2.50,"\u00e9"],"a":null}`)
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := Canonical(json.RawMessage(raw))
		if err != nil {
			return
		}
		before, errBefore := parse([]byte(raw))
		after, errAfter := parse(got)
		w := &walk{steps: 1 << 40}
		one, _ := w.key(nil, before)
		two, _ := w.key(nil, after)
		if errBefore != nil || errAfter != nil || string(one) != string(two) {
			t.Fatalf("%q became %q: %v, %v", raw, got, errBefore, errAfter)
		}
	})
}
