package openapi

import (
	"encoding/json"
	"strings"
	"testing"
)

// propertiesOf returns the names of the properties of an object's schema, in their order.
func propertiesOf(t *testing.T, text json.RawMessage) string {
	t.Helper()
	if err := checkJSON(text); err != nil {
		t.Fatal(err)
	}
	schema, _ := open([]byte(text)).(*object)
	var names []string
	for _, m := range schema.object("properties").members {
		names = append(names, m.name)
	}
	return strings.Join(names, " ")
}

// TestOrder shows that parameters have the order in which the document declares them, in JSON and in YAML: those of
// the path, those of the operation, and those of the body.
func TestOrder(t *testing.T) {
	const inJSON = `{"openapi":"3.0.3","paths":{"/repos/{owner}/{name}/issues/{number}":{
		"parameters":[{"name":"zone","in":"query","schema":{"type":"string"}},{"name":"owner","in":"path","required":true,"schema":{"type":"string"}}],
		"put":{"operationId":"issue","parameters":[
			{"name":"X-Trace","in":"header","schema":{"type":"string"}},
			{"name":"name","in":"path","required":true,"schema":{"type":"string"}},
			{"name":"number","in":"path","required":true,"schema":{"type":"string"}},
			{"name":"zone","in":"query","description":"again","schema":{"type":"integer"}}],
		"requestBody":{"required":true,"content":{"application/json":{"schema":{"allOf":[{"$ref":"#/components/schemas/Base"},{"properties":{"title":{},"body":{},"number":{}}}]}}}},
		"responses":{"200":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Base"}}}}}}}},
		"components":{"schemas":{"Base":{"type":"object","properties":{"z":{"properties":{"y":{},"x":{}}},"a":{}}}}}}`
	const inYAML = `
openapi: 3.1.0
paths:
  /repos/{owner}/{name}/issues/{number}:
    parameters: [{name: zone, in: query, schema: {type: string}}, {name: owner, in: path, required: true, schema: {type: string}}]
    put:
      operationId: issue
      parameters:
        - {name: X-Trace, in: header, schema: {type: string}}
        - {name: name, in: path, required: true, schema: {type: string}}
        - {name: number, in: path, required: true, schema: {type: string}}
      requestBody: {required: true, content: {application/json: {schema: &all {allOf: [&base {properties: {z: {properties: {y: {}, x: {}}}, a: {}}}, {properties: {title: {}, body: {}, number: {}}}]}}}}
      responses: {200: {content: {application/json: {schema: *base}}}}
`
	for name, doc := range map[string]string{"JSON": inJSON, "YAML": inYAML} {
		o := read(t, []byte(doc)).Operations[0]
		const want = "zone owner X-Trace name number z a title body number_body"
		if got := propertiesOf(t, o.Input); got != want {
			t.Errorf("%s: the parameters are %s, want %s", name, got, want)
		}
		var sent []string
		for _, p := range o.Parameters {
			sent = append(sent, p.Name)
		}
		if got := strings.Join(sent, " "); got != want {
			t.Errorf("%s: sent are %s, want %s", name, got, want)
		}
		if !strings.Contains(string(o.Input), `"z":{"properties":{"y":{},"x":{}}}`) {
			t.Errorf("%s: the input is %s", name, o.Input)
		}
		if !strings.Contains(string(o.Output), `"z":{"properties":{"y":{},"x":{}}},"a":{}`) {
			t.Errorf("%s: the output is %s", name, o.Output)
		}
	}
}

// TestMerge shows that the key << of YAML merges mappings, of which the own members come first.
func TestMerge(t *testing.T) {
	const doc = `
openapi: 3.1.0
x-base: &base {type: object, description: all}
x-more: &more {<<: *base, required: [b], description: more}
paths: {/a: {post: {operationId: a, requestBody: {required: true, content: {application/json: {schema: {<<: [*more, *base], properties: {b: {}, a: {}}}}}}}}}
`
	o := read(t, []byte(doc)).Operations[0]
	if got := propertiesOf(t, o.Input); got != "b a" || inputErr(t, o, `{"a":1}`) == nil || inputErr(t, o, `{"b":1}`) != nil {
		t.Errorf("%s: %s", got, o.Input)
	}
}

// TestWrongPlaces shows that one wrong place does not make a document unusable: it costs a keyword or an operation,
// and a note names it.
func TestWrongPlaces(t *testing.T) {
	const doc = `
openapi: 3.1.0
servers: [{url: 'https://api.example.com'}]
paths:
  /good: {get: {operationId: good, responses: {200: {description: ok}}}}
  /examples:
    post:
      operationId: examples
      requestBody: {content: {application/json: {schema: {type: object, properties: {y: {type: string, examples: {one: a}, example: [1], x-of: {$ref: 5}}}}}}}
  /bound:
    post:
      operationId: bound
      requestBody: {content: {application/json: {schema: {type: object, properties: {y: {type: number, minimum: 0, exclusiveMinimum: true}}}}}}
  /keywords:
    post:
      operationId: keywords
      requestBody: {content: {application/json: {schema: {type: object, required: null, properties: {a: {type: any}, b: {minLength: -1}, c: {enum: []}, d: {pattern: '^(?!a)b$'}, e: 5}}}}}
  /answer:
    get:
      operationId: answer
      responses: {200: {$ref: '#/components/requestBodies/B'}}
  /broken: {get: {operationId: broken, parameters: [5]}}
  /nowhere: {get: {operationId: nowhere, parameters: [{$ref: '#/components/parameters/None'}]}}
  /text: {get: nothing}
  /outside: {get: {$ref: 'resources/get.yml'}}
  /list: []
components:
  schemas: [1]
  requestBodies: {B: {content: {application/json: {schema: {type: string}}}}}
`
	d := read(t, []byte(doc))
	var names []string
	for _, o := range d.Operations {
		names = append(names, o.Name)
	}
	if got := strings.Join(names, " "); got != "answer bound examples good keywords" {
		t.Errorf("the operations are %s", got)
	}
	const at = "/paths/~1keywords/post/requestBody/content/application~1json/schema/"
	want := []string{
		"/list is left out: it is no object, at /paths/~1list",
		`GET /outside ($ref "resources/get.yml") is left out: it has a $ref that leads out of the document, and nothing is loaded for it`,
		"broken is left out: it has a parameter that is no object, at /paths/~1broken/get/parameters/0",
		"keywords (" + at + "properties/a/type), keywords (" + at + "properties/b/minLength), keywords (" + at + "properties/c/enum): a keyword of a schema is left out: its value cannot be used",
		`keywords ("^(?!a)b$" at ` + at + "properties/d/pattern): a pattern is left out: it is not one of RE2",
		"keywords (" + at + "properties/e): a schema is left out: it is no object",
		`nowhere is left out: it has a parameter at /paths/~1nowhere/get/parameters/0 that has the $ref "#/components/parameters/None", which leads to something that is not there`,
		"GET /text is left out: it is no object, at /paths/~1text/get",
	}
	if got := strings.Join(d.Notes, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("notes:\n%s", got)
	}
	if o := find(t, d, "bound"); inputErr(t, o, `{"y":0}`) == nil || inputErr(t, o, `{"y":0.1}`) != nil {
		t.Errorf("bound: %s", o.Input)
	}
	if o := find(t, d, "answer"); string(o.Output) != `{"type":"string"}` {
		t.Errorf("answer: %s", o.Output)
	}
	if _, err := Read([]byte(doc), Choice{Operations: []string{"good", "broken"}}); err == nil || !strings.HasPrefix(err.Error(), "broken cannot be a tool: it has a parameter that is no object") {
		t.Errorf("a named operation: %v", err)
	}
	if some := read(t, []byte(doc), "good"); len(some.Notes) != 0 {
		t.Errorf("notes about operations that are not asked for: %q", some.Notes)
	}
}

// TestReferences shows that a reference may lead to any place of the document.
func TestReferences(t *testing.T) {
	const doc = `
openapi: 3.1.0
paths:
  /a: {get: {operationId: a, responses: {200: {content: {application/json: {schema: {type: object, properties: {x: {oneOf: [{type: string}, {type: integer}]}}}}}}}}}
  /b: {post: {operationId: b, requestBody: {content: {application/json: {schema: {type: object, properties: {y: {$ref: '#/paths/~1a/get/responses/200/content/application~1json/schema/properties/x'}}}}}}}}
  /c: {post: {operationId: c, requestBody: {content: {application/json: {schema: {type: object, properties: {y: {$ref: '#/components/responses/R/content/application~1json/schema/oneOf/0'}}}}}}}}
  /d: {post: {operationId: d, requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/A'}}}}}}
components:
  responses: {R: {content: {application/json: {schema: {oneOf: [{type: string}, {type: integer}]}}}}}
  schemas:
    A:
      type: object
      required: [k, n]
      properties:
        k: {const: fixed}
        n: {type: [string, "null"]}
        p: {$ref: '#/components/schemas/P', description: with sibling, default: {x: 1}}
        t: {type: array, prefixItems: [{type: string}, {type: integer}], items: false}
        l: {$ref: '#/components/schemas/A/$defs/L'}
      $defs: {L: {type: string, minLength: 2}}
      unevaluatedProperties: false
    P: {type: object, properties: {x: {type: integer}}}
`
	d := read(t, []byte(doc))
	if len(d.Operations) != 4 || len(d.Notes) != 0 {
		t.Fatalf("notes %q", d.Notes)
	}
	for _, test := range []struct {
		tool, input string
		good        bool
	}{
		{"b", `{"y":1}`, true},
		{"b", `{"y":"a"}`, true},
		{"b", `{"y":true}`, false},
		{"c", `{"y":"a"}`, true},
		{"c", `{"y":1}`, false},
		{"d", `{"k":"fixed","n":null,"p":{"x":1},"t":["a",1],"l":"ab"}`, true},
		{"d", `{"k":"fixed","n":null,"l":"a"}`, false},
		{"d", `{"k":"fixed","n":null,"p":{"x":"a"}}`, false},
		{"d", `{"k":"fixed","n":null,"t":["a",1,2]}`, false},
		{"d", `{"k":"fixed","n":null,"z":1}`, false},
	} {
		o := find(t, d, test.tool)
		if err := inputErr(t, o, test.input); (err == nil) != test.good {
			t.Errorf("%s: %s: %v; the input is %s", test.tool, test.input, err, o.Input)
		}
	}
}

// TestChoice shows how operations are chosen.
func TestChoice(t *testing.T) {
	const doc = `{"openapi":"3.2.0","paths":{
		"/issues":{"get":{"operationId":"issues/list","tags":["issues"]},"post":{"operationId":"issues/create","tags":["issues","write"]}},
		"/repos/{id}":{"parameters":[{"name":"id","in":"path"}],"get":{"operationId":"repos/get","tags":["repos"]}},
		"/repos/{id}/large":{"put":{"operationId":"repos/large"}}}}`
	for _, test := range []struct {
		choice    Choice
		want, err string
	}{
		{Choice{}, "issues_list issues_create repos_get", ""},
		{Choice{Operations: []string{"issues/*"}}, "issues_list issues_create", ""},
		{Choice{Operations: []string{"*_get", "issues/list"}}, "issues_list repos_get", ""},
		{Choice{Operations: []string{"/repos/*"}}, "repos_get", ""},
		{Choice{Tags: []string{"write", "repos"}}, "issues_create repos_get", ""},
		{Choice{Tags: []string{"write"}, Operations: []string{"repos/get"}}, "issues_create repos_get", ""},
		{Choice{Tags: []string{"none"}}, "", `the document has no operation with the tag "none"`},
		{Choice{Operations: []string{"none*"}}, "", `the document has no operation "none*"`},
		{Choice{Operations: []string{"repos/large"}}, "", "repos/large cannot be a tool: it cannot be called: {id} in the path is no parameter"},
	} {
		d, err := Read([]byte(doc), test.choice)
		var names []string
		if err == nil {
			for _, o := range d.Operations {
				names = append(names, o.Name)
			}
		}
		if got := strings.Join(names, " "); got != test.want || (err != nil || test.err != "") && (err == nil || err.Error() != test.err) {
			t.Errorf("%+v: got %s, %v", test.choice, got, err)
		}
	}
}
