//go:build !race

package schema

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// processorTime returns how much processor time f takes. Other programs on the machine do not affect it.
func processorTime(t *testing.T, f func()) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	now := func() time.Duration {
		const thread = 1 // RUSAGE_THREAD
		var usage syscall.Rusage
		if err := syscall.Getrusage(thread, &usage); err != nil {
			t.Fatal(err)
		}
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	start := now()
	f()
	return now() - start
}

// TestT7LargestSchema shows that the largest schemas that are allowed compile quickly.
func TestT7LargestSchema(t *testing.T) {
	var wide strings.Builder
	for i := 0; wide.Len() < MaxSchema-40; i++ {
		fmt.Fprintf(&wide, `"%x":{"not":{}},`, i)
	}
	var values strings.Builder
	for i := 0; values.Len() < MaxSchema-40; i++ {
		fmt.Fprintf(&values, "%d.5,", i)
	}
	for name, schema := range map[string]string{
		"properties": `{"properties":{` + wide.String() + `"x":true}}`,
		"enum":       `{"enum":[` + values.String() + `0]}`,
	} {
		var err error
		took := processorTime(t, func() { _, err = Compile(json.RawMessage(schema)) })
		t.Logf("%s: %s, %v", name, took, err)
		if took > 5*time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
}

// TestT7TimeOfChecks shows that with an input of 1 MiB no allowed schema keeps a processor busy for more than
// 50 ms, or on a slow machine for more than three times as long as it takes to decode such an input.
func TestT7TimeOfChecks(t *testing.T) {
	nested := `{"type":"string"}`
	for range 15 {
		nested = `{"anyOf":[{"properties":{"a":` + nested + `}}]}`
	}
	input := `1`
	for range 60 {
		input = `{"a":` + input + `}`
	}
	repeat := func(element string) string {
		values := 2
		for _, sign := range []string{"{", "[", ":", ","} {
			values += strings.Count(element, sign)
		}
		n := min(MaxInput/(len(element)+1), MaxValues/values) - 10
		return "[" + strings.Repeat(element+",", n) + element + "]"
	}
	var distinct, objects, mixed strings.Builder
	for i := 0; distinct.Len() < MaxInput-100 && i < 60_000; i++ {
		fmt.Fprintf(&distinct, "%d.%d,", i, i)
	}
	for i := 0; objects.Len() < MaxInput-100 && i < 45_000; i++ {
		fmt.Fprintf(&objects, `"member %d":%d,`, i, i)
	}
	for i := 0; mixed.Len() < MaxInput-1000; i++ {
		fmt.Fprintf(&mixed, `{"b":"%s","a":[1e%d]},`, strings.Repeat("ab", 200), i%400)
	}
	var numbers strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&numbers, ",%d.5", i)
	}
	enum := `{"enum":["x"` + numbers.String() + "]}"
	var words, patterns, alternatives, names strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&words, `,"word %d"`, i)
		fmt.Fprintf(&patterns, `,"^p%d$":{}`, i)
		fmt.Fprintf(&names, `,"n%d"`, i)
	}
	for i := range 1200 {
		fmt.Fprintf(&alternatives, `,{"enum":["a%d","b","c","d","e","f","g","h","i"]}`, i)
	}
	most := 50 * time.Millisecond
	for range 3 {
		most = max(most, 3*processorTime(t, func() {
			var decoded map[string]int
			if err := json.Unmarshal([]byte("{"+objects.String()+`"x":1}`), &decoded); err != nil {
				t.Fatal(err)
			}
		}))
	}
	longEnum := `{"enum":[` + strings.Repeat(`"`+strings.Repeat("a", 30_000)+`b",`, 2) + `1]}`
	for name, test := range map[string]struct{ schema, input string }{
		"nested alternatives, recursive": {`{"anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["a"]},{"properties":{"a":{"$ref":"#"}},"required":["a"]},{"type":"string"}]}`, input},
		"one of, recursive":              {`{"oneOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}},"required":["a"]}]}`, input},
		"not, recursive":                 {`{"allOf":[{"not":{"properties":{"a":{"$ref":"#"}}}},{"not":{"properties":{"a":{"$ref":"#"}}}}]}`, input},
		"unevaluated, recursive":         {`{"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}],"unevaluatedProperties":false}`, input},
		"nested alternatives":            {nested, input},
		"empty lists":                    {`{"items":{"type":"array"}}`, repeat(`[]`)},
		"empty lists, unique":            {`{"items":{"type":"array"},"uniqueItems":true}`, repeat(`[]`)},
		"distinct numbers, unique":       {`{"uniqueItems":true}`, "[" + distinct.String() + "0.1]"},
		"exponents, unique":              {`{"uniqueItems":true}`, repeat("1e400")},
		"exponents, bounds":              {`{"items":{"maximum":1e399,"multipleOf":1e-399}}`, repeat("1e-400")},
		"long numbers":                   {`{"items":{"maximum":1}}`, repeat("0." + strings.Repeat("1", 990))},
		"long numbers, multiples":        {`{"items":{"multipleOf":0.0` + strings.Repeat("7", 900) + `}}`, repeat("0." + strings.Repeat("1", 990))},
		"integers by exponent":           {`{"items":{"type":"integer"}}`, repeat("1e-400")},
		"enum of numbers":                {`{"items":` + enum + `}`, "[" + distinct.String() + "0.1]"},
		"enum of one number":             {enum, "77.77"},
		"enum of long texts":             {`{"items":` + longEnum + `}`, repeat(`"` + strings.Repeat("a", 30_001) + `"`)},
		"large object":                   {`{"additionalProperties":{"type":"integer"},"propertyNames":{"pattern":"^member [0-9]{1,5}$"}}`, "{" + objects.String() + `"x":1}`},
		"large object, patterns":         {`{"patternProperties":{"1$":{},"2$":{},"3$":{},"4$":{},"5$":{},"^.*x":{}}}`, "{" + objects.String() + `"x":1}`},
		"large object, unevaluated":      {`{"allOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}],"unevaluatedProperties":{"type":"integer"}}`, "{" + objects.String() + `"x":1}`},
		"long text, pattern":             {`{"pattern":"^(a|b|ab)*c$"}`, `"` + strings.Repeat("ab", MaxInput/2-10) + `"`},
		"long text, large pattern":       {`{"pattern":"(a.{500}){2}.*z"}`, `"` + strings.Repeat("ab", MaxInput/2-10) + `"`},
		"texts, large pattern":           {`{"items":{"pattern":"(.*a){50}z"}}`, repeat(`"` + strings.Repeat("a", 100) + `"`)},
		"texts that match":               {`{"items":{"pattern":"(.*a){50}"}}`, repeat(`"` + strings.Repeat("a", 100) + `"`)},
		"many failures":                  {`{"items":{"type":"string"}}`, repeat("1")},
		"many failures in alternatives":  {`{"items":{"anyOf":[{"type":"string"},{"type":"object"},{"type":"null"},{"type":"number"}]}}`, repeat("1")},
		"enum of texts":                  {`{"items":{"enum":["x"` + words.String() + `]}}`, repeat(`"word 2999"`)},
		"enums in alternatives":          {`{"items":{"anyOf":[{"type":"null"}` + alternatives.String() + `,{"type":"integer"}]}}`, repeat("1")},
		"one enum in alternatives":       {`{"items":{"anyOf":[{"enum":["a","b","c","d","e","f","g","h","i","j","k"]},{"type":"integer"}]}}`, repeat("1")},
		"patterns of empty objects":      {`{"items":{"patternProperties":{"x":{}` + patterns.String() + `}}}`, repeat("{}")},
		"patterns of small objects":      {`{"items":{"patternProperties":{"x":{}` + patterns.String() + `}}}`, repeat(`{"a":1}`)},
		"many required":                  {`{"items":{"anyOf":[{"type":"object","required":[` + names.String()[1:] + `]},{}]}}`, "[{" + strings.ReplaceAll(strings.TrimPrefix(names.String(), ","), `",`, `":1,`) + ":1}]"},
		"failures that are told":         {`{"$defs":{"a":{"anyOf":[{"type":"string"},{"type":"null"},{"items":{"$ref":"#/$defs/a"},"minItems":1,"type":"array"},{"items":{"$ref":"#/$defs/a"},"type":"array","minItems":1}]}},"$ref":"#/$defs/a"}`, strings.Repeat("[", 12) + "1" + strings.Repeat("]", 12)},
		"unknown members":                {`{"items":{"anyOf":[{"properties":{"x":{}},"additionalProperties":false},{}]}}`, repeat(`{"xx":1}`)},
		"contains":                       {`{"contains":{"contains":{"contains":true}}}`, repeat("[[]]")},
		"mixed":                          {`{"items":{"additionalProperties":{"anyOf":[{"maxLength":3},{"items":{"maximum":1}}]}},"uniqueItems":true}`, "[" + mixed.String() + "1]"},
		"lengths":                        {`{"allOf":[` + strings.Repeat(`{"maxLength":2000000},`, 2000) + `{}]}`, `"` + strings.Repeat("a", MaxInput-10) + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Compile(json.RawMessage(test.schema))
			if err != nil {
				t.Fatal(err)
			}
			const times = 5
			var verdict error
			took := processorTime(t, func() {
				for range times {
					verdict = s.Check(json.RawMessage(test.input))
				}
			}) / times
			t.Logf("%d bytes: %s, %v", len(test.input), took, verdict)
			if took > most {
				t.Errorf("%s, more than %s: %v", took, most, verdict)
			}
		})
	}
}
