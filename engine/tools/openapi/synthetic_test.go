package openapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"fermata/engine/tools/httptool"
)

// one returns a document with one operation, GET or POST /x/{id}.
func one(version, method, operation, components string) []byte {
	if components == "" {
		components = "{}"
	}
	return fmt.Appendf(nil, `{"openapi":%q,"info":{"title":"t","version":"1"},"servers":[{"url":"https://{host}/v1","variables":{"host":{"default":"api.example.com"}}}],
		"paths":{"/x/{id}":{"parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string"}}],%q:%s}},"components":%s}`, version, method, operation, components)
}

// read reads a document that must be good.
func read(t *testing.T, doc []byte, only ...string) *Document {
	t.Helper()
	if len(only) == 0 {
		only = nil
	}
	d, err := Read(doc, Choice{Operations: only})
	if err != nil {
		t.Fatal(err)
	}
	checkAll(t, d)
	return d
}

// TestStyles shows how parameters are written.
func TestStyles(t *testing.T) {
	const (
		list   = `"schema":{"type":"array","items":{"type":"string"}}`
		object = `"schema":{"type":"object","properties":{"a":{"type":"string"}}}`
	)
	for name, test := range map[string]struct {
		parameter string
		style     httptool.Style
		note      string
	}{
		"form":                {`"in":"query",` + list, httptool.StyleRepeat, ""},
		"form, not exploded":  {`"in":"query","explode":false,` + list, httptool.StyleComma, ""},
		"space":               {`"in":"query","style":"spaceDelimited",` + list, httptool.StyleSpace, ""},
		"space, exploded":     {`"in":"query","style":"spaceDelimited","explode":true,` + list, httptool.StyleRepeat, ""},
		"pipe":                {`"in":"query","style":"pipeDelimited","explode":false,` + list, httptool.StylePipe, ""},
		"deep":                {`"in":"query","style":"deepObject","explode":true,` + object, httptool.StyleDeep, ""},
		"object":              {`"in":"query",` + object, httptool.StyleSpread, ""},
		"JSON":                {`"in":"query","content":{"application/json":{` + object + `}}`, httptool.StyleJSON, ""},
		"header":              {`"in":"header",` + list, httptool.StyleComma, ""},
		"object in one":       {`"in":"query","explode":false,` + object, httptool.StyleComma, ""},
		"object with pipes":   {`"in":"query","style":"pipeDelimited","explode":false,` + object, httptool.StylePipe, ""},
		"object in a header":  {`"in":"header",` + object, httptool.StyleComma, ""},
		"pairs in a header":   {`"in":"header","explode":true,` + object, httptool.StylePairs, ""},
		"pipes, exploded":     {`"in":"query","style":"pipeDelimited","explode":true,` + object, "", `it is an exploded object with the style "pipeDelimited", which is not supported`},
		"XML":                 {`"in":"query","content":{"application/xml":{` + object + `}}`, "", "it is neither plain nor JSON"},
		"style of the future": {`"in":"query","style":"new",` + list, "", `it has the style "new", which is not known`},
	} {
		t.Run(name, func(t *testing.T) {
			d := read(t, one("3.0.3", "get", `{"operationId":"get","parameters":[{"name":"p",`+test.parameter+`}],"responses":{}}`, ""))
			parameters := d.Operations[0].Parameters
			if test.note != "" {
				if len(parameters) != 1 || len(d.Notes) != 1 || d.Notes[0] != `get: the parameter "p" is left out: `+test.note {
					t.Errorf("parameters %v, notes %q", parameters, d.Notes)
				}
				return
			}
			if len(parameters) != 2 || parameters[1].Name != "p" || parameters[1].Style != test.style || len(d.Notes) > 0 {
				t.Errorf("parameters %+v, notes %q", parameters, d.Notes)
			}
		})
	}
	if _, err := Read(one("3.0.3", "get", `{"operationId":"get","parameters":[{"name":"id","in":"path","required":true,"style":"matrix","schema":{}}],"responses":{}}`, ""), Choice{Operations: []string{"get"}}); err == nil ||
		err.Error() != `get cannot be a tool: it has the parameter "id", which has the style "matrix", which is not supported` {
		t.Errorf("matrix: %v", err)
	}
}

// TestT2Headers shows that no document can declare a header that says where a request goes, or who sends it.
func TestT2Headers(t *testing.T) {
	for _, name := range []string{
		"Host", "authorization", "Cookie", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection", "X-Forwarded-For",
		"X-HTTP-Method-Override", "Proxy-Authorization", "TE", "Upgrade", "a\r\nb", "a b", "",
	} {
		quoted, _ := json.Marshal(name)
		for _, required := range []string{"true", "false"} {
			doc := one("3.1.0", "get", `{"operationId":"get","parameters":[{"name":`+string(quoted)+`,"in":"header","required":`+required+`,"schema":{"type":"string"}},
				{"name":`+string(quoted)+`,"in":"cookie","required":`+required+`,"schema":{"type":"string"}},{"name":"X-Trace","in":"header","schema":{"type":"string"}}],"responses":{}}`, "")
			d, err := Read(doc, Choice{})
			if err != nil {
				t.Errorf("%q: %v", name, err)
				continue
			}
			checkAll(t, d)
			o := d.Operations[0]
			if len(o.Parameters) != 2 || o.Parameters[1].Name != "X-Trace" || len(d.Notes) != 2 {
				t.Errorf("%q: parameters %+v, notes %q", name, o.Parameters, d.Notes)
			}
			if inputErr(t, o, `{"id":"1","X-Trace":"a"}`) != nil {
				t.Errorf("%q: the input is %s", name, o.Input)
			}
		}
	}
}

// TestBodies shows which parameters are made from bodies.
func TestBodies(t *testing.T) {
	body := func(required, schema string) string {
		return `{"operationId":"post","requestBody":{"required":` + required + `,"content":{"application/json; charset=utf-8":{"schema":` + schema + `}}},"responses":{}}`
	}
	const components = `{"schemas":{
		"Base":{"type":"object","required":["kind"],"properties":{"kind":{"type":"string"},"made":{"type":"string","readOnly":true}}},
		"Thing":{"allOf":[{"$ref":"#/components/schemas/Base"},{"description":"and"},{"type":"object","properties":{"size":{"type":"integer","nullable":true},"id":{"type":"integer"}},"required":["id"]}]},
		"Node":{"type":"object","required":["value"],"properties":{"value":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/components/schemas/Node"}}}},
		"Loop":{"$ref":"#/components/schemas/Loop"}}}`
	for name, test := range map[string]struct {
		operation  string
		parameters string
		good, bad  []string
	}{
		"object": {
			body("true", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"]}`),
			"id:path a:body b:body",
			[]string{`{"id":"1","a":2}`},
			[]string{`{"id":"1"}`, `{"id":"1","a":2,"c":3}`, `{"a":2}`},
		},
		"optional": {
			body("false", `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`),
			"id:path a:body",
			[]string{`{"id":"1"}`},
			[]string{`{"id":"1","a":"x"}`},
		},
		"clash": {
			body("true", `{"$ref":"#/components/schemas/Thing"}`),
			"id:path kind:body size:body id_body(id):body",
			[]string{`{"id":"1","id_body":2,"kind":"x","size":null}`},
			[]string{`{"id":"1","kind":"x"}`, `{"id":"1","id_body":2,"kind":"x","made":"x"}`},
		},
		"any member": {
			body("true", `{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":{"type":"string"}}`),
			"id:path a:body rest",
			[]string{`{"id":"1","a":2,"b":"x"}`},
			[]string{`{"id":"1","b":2}`},
		},
		"list": {
			body("true", `{"type":"array","items":{"type":"integer"}}`),
			"id:path body:whole",
			[]string{`{"id":"1","body":[1]}`},
			[]string{`{"id":"1"}`, `{"id":"1","body":["a"]}`},
		},
		"alternatives": {
			body("true", `{"oneOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"type":"string"}]}`),
			"id:path body:whole",
			[]string{`{"id":"1","body":{"a":1}}`, `{"id":"1","body":"x"}`},
			[]string{`{"id":"1","body":{}}`},
		},
		"free object": {
			body("true", `{"type":"object"}`), "id:path body:whole", []string{`{"id":"1","body":{"a":1}}`}, []string{`{"id":"1","body":1}`},
		},
		"recursive": {
			body("true", `{"$ref":"#/components/schemas/Node"}`),
			"id:path value:body children:body",
			[]string{`{"id":"1","value":"a","children":[{"value":"b","children":[{"value":"c"}]}]}`},
			[]string{`{"id":"1","value":"a","children":[{"value":"b","children":[{}]}]}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := read(t, one("3.0.3", "post", test.operation, components), "post")
			o := d.Operations[0]
			var got []string
			for _, p := range o.Parameters {
				text := p.Name
				if p.Sent != "" {
					text += "(" + p.Sent + ")"
				}
				got = append(got, text+":"+string(p.In))
			}
			if o.Rest {
				got = append(got, "rest")
			}
			if strings.Join(got, " ") != test.parameters {
				t.Errorf("parameters %q, want %s", got, test.parameters)
			}
			for _, input := range test.good {
				if err := inputErr(t, o, input); err != nil {
					t.Errorf("%s: %v", input, err)
				}
			}
			for _, input := range test.bad {
				if err := inputErr(t, o, input); err == nil {
					t.Errorf("%s has passed: %s", input, o.Input)
				}
			}
		})
	}
	// A body that does not say what it is may be anything. An operation without its arguments is of no use.
	for schema, note := range map[string]string{
		`{"$ref":"#/components/schemas/Loop"}`: "post: the schema of its input is too large or refers to itself; below some levels of its references it allows everything",
		`{"$ref":"#/components/schemas/None"}`: `post (/paths/~1x~1{id}/post/requestBody/content/application~1json; charset=utf-8/schema): a schema allows everything: it has the $ref "#/components/schemas/None", which leads to something that is not there`,
	} {
		d := read(t, one("3.0.3", "post", body("true", schema), components), "post")
		if len(d.Notes) != 1 || d.Notes[0] != note || inputErr(t, d.Operations[0], `{"id":"1","body":5}`) != nil || inputErr(t, d.Operations[0], `{"id":"1"}`) == nil {
			t.Errorf("%s: notes %q, input %s", schema, d.Notes, d.Operations[0].Input)
		}
	}
	for _, required := range []string{"true", "false"} {
		doc := one("3.0.3", "post", `{"operationId":"post","requestBody":{"required":`+required+`,"content":{"image/png":{}}},"responses":{}}`, "")
		const want = "post cannot be a tool: it takes a body that is neither JSON nor a form nor a text"
		if _, err := Read(doc, Choice{Operations: []string{"post"}}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestNewAndOld shows that schemas of both versions of OpenAPI have the same meaning.
func TestNewAndOld(t *testing.T) {
	const old = `{"operationId":"get","parameters":[{"name":"a","in":"query","schema":{"type":"integer","minimum":1,"exclusiveMinimum":true,"nullable":true}}],"responses":{"404":{"description":"no"},"201":{"description":"later"},
		"200":{"description":"yes","content":{"text/plain":{},"application/vnd.api+json":{"schema":{"type":"object","properties":{"x":{"nullable":true,"allOf":[{"type":"string"}]},"secret":{"type":"string","writeOnly":true}}}}}}}}`
	const recent = `{"operationId":"get","parameters":[{"name":"a","in":"query","schema":{"type":["integer","null"],"exclusiveMinimum":1}}],"responses":{
		"200":{"description":"yes","content":{"application/json":{"schema":{"type":"object","properties":{"x":{"anyOf":[{"allOf":[{"type":"string"}]},{"type":"null"}]}}}}}}}}`
	first, second := read(t, one("3.0.3", "get", old, "")), read(t, one("3.1.0", "get", recent, ""))
	if one, two := first.Operations[0], second.Operations[0]; string(one.Input) != string(two.Input) || string(one.Output) != string(two.Output) {
		t.Errorf("3.0: %s and %s\n3.1: %s and %s", one.Input, one.Output, two.Input, two.Output)
	}
	if first.BaseURL != "https://api.example.com/v1" {
		t.Errorf("the base URL is %q", first.BaseURL)
	}
}

// TestNames shows how tools are named, and that no two tools have the same name.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"getPet": "getPet", "get-pet": "get-pet", "repos/get-all": "repos_get-all", "7up": "op_7up", "größe": "gr_e", "a.b c": "a_b_c", "…": "op_",
		strings.Repeat("x", 70): strings.Repeat("x", 64), "__init__": "init", "": "get_pets_petId_photos",
	} {
		if got := toolName(name, "GET", "/pets/{petId}/photos"); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	const doc = `{"openapi":"3.0.0","info":{"title":"t","version":"1"},"paths":{
		"/a":{"get":{"operationId":"get-it","responses":{}}},"/b":{"get":{"operationId":"get_it","responses":{}}},"/c":{"get":{"responses":{}}},
		"/d":{"servers":[{"url":"https://evil.example.com"}],"get":{"operationId":"d","responses":{}}},"/e/{x}":{"get":{"operationId":"e","responses":{}}},"/f/../g":{"get":{"operationId":"f","responses":{}}},
		"/h":{"trace":{"operationId":"h","responses":{}}}}}`
	d := read(t, []byte(doc))
	var names []string
	for _, o := range d.Operations {
		names = append(names, o.Name)
	}
	if strings.Join(names, " ") != "get-it_5d9e4334 get_it_ca010159 get_c" || d.BaseURL != "" || len(d.Notes) != 3 {
		t.Errorf("%q, notes %q", names, d.Notes)
	}
	for _, only := range []string{"d", "e", "f", "h", "none"} {
		if _, err := Read([]byte(doc), Choice{Operations: []string{"get_c", only}}); err == nil || !strings.Contains(err.Error(), only) {
			t.Errorf("%s: %v", only, err)
		}
	}
	if d := read(t, []byte(doc), "get_it"); len(d.Operations) != 1 || d.Operations[0].Path != "/b" {
		t.Errorf("%+v", d)
	}
}

// TestT7Documents shows that hostile documents are refused quickly, and that nothing is loaded for them.
func TestT7Documents(t *testing.T) {
	external := func(ref string) []byte {
		return one("3.0.3", "get", `{"operationId":"get","parameters":[{"$ref":"`+ref+`"}],"responses":{}}`, "")
	}
	var large strings.Builder
	large.WriteString(`{"openapi":"3.0.0","info":{"title":"t","version":"1"},"paths":{`)
	for i := range 600 {
		fmt.Fprintf(&large, `"/p%d":{"get":{"responses":{}}},`, i)
	}
	large.WriteString(`"/x":{}}}`)
	var bomb strings.Builder
	bomb.WriteString("a: &a [x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c < 'k'; c++ {
		fmt.Fprintf(&bomb, "%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	outside := func(who, ref string) string {
		return "the document has no operation that can be a tool: " + who + ` has the $ref "` + ref + `", which leads out of the document, and nothing is loaded for it`
	}
	const parameter = "get is left out: it has a parameter at /paths/~1x~1{id}/get/parameters/0 that"
	for name, test := range map[string]struct {
		doc  []byte
		want string
	}{
		"file":        {external("file:///etc/passwd"), outside(parameter, "file:///etc/passwd")},
		"path":        {external("../../etc/passwd#/x"), outside(parameter, "../../etc/passwd#/x")},
		"http":        {external("http://169.254.169.254/x"), outside(parameter, "http://169.254.169.254/x")},
		"network":     {external("//evil.example.com/x"), outside(parameter, "//evil.example.com/x")},
		"path item":   {[]byte(`{"openapi":"3.0.0","info":{},"paths":{"/a":{"$ref":"a.yaml"}}}`), "the document has no operation that can be a tool: /a ($ref \"a.yaml\") is left out: it has a $ref that leads out of the document, and nothing is loaded for it"},
		"aliases":     {[]byte("openapi: 3.0.0\n" + bomb.String()), "the document has more than 2000000 values"},
		"endless":     {[]byte("openapi: 3.0.0\nx: &x [*x]\n"), "the document has more than 200 levels"},
		"long":        {[]byte("openapi: 3.0.0\na: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 100) + "]"), "the document has more than 67108864 bytes when its aliases are written out"},
		"merge":       {[]byte("openapi: 3.0.0\n<<: b\n"), "the document merges something in line 2 that is no mapping"},
		"merge bomb":  {[]byte("openapi: 3.0.0\n" + strings.NewReplacer("[x,x,x,x,x,x,x,x,x]", "{x: 1}", "[", "{<<: [", "]", "]}").Replace(bomb.String())), "the document has more than 2000000 values"},
		"many merges": {[]byte("openapi: 3.0.0\nx: &x {" + manyKeys(20_000) + "}\ny: {<<: [" + strings.Repeat("*x,", 20_000) + "]}"), "the document has more than 2000000 values"},
		"endless <<":  {[]byte("openapi: 3.0.0\nx: &x {<<: *x}\n"), "the document has more than 200 levels"},
		"endless [":   {[]byte("openapi: 3.0.0\nx: {<<: &x [*x]}\n"), "the document "},
		"size":        {[]byte(strings.Repeat(" ", MaxDocument+1)), "the document has 16777217 bytes; at most 16777216 are allowed"},
		"depth":       {[]byte(`{"a":` + strings.Repeat("[", 100_000)), "the document has more than 200 levels"},
		"values":      {[]byte(`{"a":[` + strings.Repeat("1,", maxValues) + "1]}"), "the document has more than 2000000 values"},
		"twins":       {[]byte("{\"openapi\":\"3.0.0\",\n\"paths\":{\"/a\":{},\"/a\":{}}}"), `the document has two members of one name at /paths/~1a, line 2`},
		"YAML twins":  {[]byte("openapi: 3.0.0\npaths:\n  /a: {}\n  /a: {}\n"), `the document has two members of the name "/a", the second one in line 4`},
		"more":        {[]byte(`{"openapi":"3.0.0"} x`), "the document has something after its end"},
		"one brace":   {[]byte(`{"openapi":"3.0.0"}}`), "the document has something after its end"},
		"number":      {[]byte(`{"openapi":"3.0.0","x":1e999999999}`), "the document has a number with an exponent beyond 300"},
		"Swagger":     {[]byte(`{"swagger":"2.0"}`), "the document is Swagger 2.0; convert it to OpenAPI 3.0 or 3.1"},
		"future":      {[]byte(`{"openapi":"4.0.0"}`), `the document is OpenAPI "4.0.0"; 3.0, 3.1 and 3.2 can be read`},
		"not OpenAPI": {[]byte(`{"a":1}`), "the document is no OpenAPI document: it has no member openapi with the version"},
		"list":        {[]byte(`[]`), "the document is no OpenAPI document: it must be an object"},
		"empty":       {[]byte(""), "the document is empty"},
		"broken":      {[]byte("{\n\"a\":"), "the document is not valid JSON at line 2"},
		"broken YAML": {[]byte("a: [\n"), "the document is not valid YAML: "},
		"operations":  {[]byte(large.String()), "the document has 600 operations; name at most 500 of them in operations"},
		"wrong kind":  {[]byte(`{"openapi":"3.0.0","paths":[]}`), "the document is not a valid OpenAPI document: a JSON array stands in the place of paths"},
		"wrong value": {[]byte(`{"openapi":"3.0.0","paths":{"/a":{"get":"x"}}}`), "the document has no operation that can be a tool: GET /a is left out: it is no object, at /paths/~1a/get"},
		"left out": {
			[]byte(`{"openapi":"3.0.0","info":{"title":"t","version":"1"},"paths":{"/a/{id}":{"get":{"operationId":"g","responses":{}}}}}`),
			"the document has no operation that can be a tool: g is left out: it ",
		},
		"nothing": {[]byte(`{"openapi":"3.0.0","info":{"title":"t","version":"1"},"paths":{}}`), "the document has no operation that can be a tool"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := Read(test.doc, Choice{})
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// manyKeys returns members of a mapping in YAML.
func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: 1, ", i)
	}
	return b.String()
}

// TestT7LargeSchemas shows that a schema that would expand without limit is truncated and can still be used.
func TestT7LargeSchemas(t *testing.T) {
	schemas := map[string]any{"s0": map[string]any{"type": "string"}}
	for i := 1; i < 40; i++ {
		ref := map[string]any{"$ref": fmt.Sprintf("#/components/schemas/s%d", i-1)}
		schemas[fmt.Sprintf("s%d", i)] = map[string]any{"type": "object", "properties": map[string]any{"a": ref, "b": ref, "c": ref}}
	}
	components, _ := json.Marshal(map[string]any{"schemas": schemas})
	start := time.Now()
	d := read(t, one("3.0.3", "post", `{"operationId":"post","requestBody":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/components/schemas/s39"}}}},"responses":{}}`, string(components)))
	o := d.Operations[0]
	if len(d.Notes) != 1 || !strings.HasPrefix(d.Notes[0], "post: the schema of its input is too large or refers to itself; below some levels ") {
		t.Errorf("notes %q", d.Notes)
	}
	if inputErr(t, o, `{"id":"1","a":{"b":{"c":{}}}}`) != nil || inputErr(t, o, `{"id":"1","a":{"b":5}}`) == nil {
		t.Errorf("the input is %.1000s", o.Input)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

// TestYAML shows that a document in YAML has the same operations as the same document in JSON.
func TestYAML(t *testing.T) {
	const doc = `
openapi: 3.1.0
info: {title: t, version: 2024-01-01}
servers:
  - url: /relative
  - url: https://api.example.com
paths:
  /a:
    get:
      operationId: get
      summary: Gets.
      description: |
        It gets
        things.
      parameters:
        - {name: n, in: query, schema: {enum: [1, "2", yes, null, 0x10]}}
      responses:
        200: {description: ok, content: {application/json: {schema: {type: boolean}}}}
`
	d := read(t, []byte(doc))
	o := d.Operations[0]
	if o.Description != "Gets.\n\nIt gets\nthings." || d.BaseURL != "https://api.example.com" || string(o.Output) != `{"type":"boolean"}` {
		t.Errorf("%+v", d)
	}
	if !strings.Contains(string(o.Input), `"enum":[1,"2","yes",null,"0x10"]`) {
		t.Errorf("the input is %s", o.Input)
	}
}

// FuzzRead looks for documents that break the reader.
func FuzzRead(f *testing.F) {
	f.Add(string(one("3.0.3", "get", `{"operationId":"get","responses":{}}`, "")))
	f.Add("openapi: 3.1.0\npaths: {/a: {get: {}}}\n")
	f.Fuzz(func(t *testing.T, doc string) {
		d, err := Read([]byte(doc), Choice{})
		if err == nil {
			checkAll(t, d)
		}
	})
}
