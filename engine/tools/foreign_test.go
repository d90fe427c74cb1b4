package tools_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"fermata/engine/tools"
	"fermata/stubs"
)

// mcpOf serves tools as an MCP server does: definitions are the definitions of its tools, and a call is answered
// with its arguments.
func mcpOf(definitions string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Arguments json.RawMessage `json:"arguments"`
			} `json:"params"`
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil || len(m.ID) == 0 {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		answer := `"error":{"code":-32601,"message":"no such method"}`
		switch m.Method {
		case "initialize":
			answer = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"test","version":"1"}}`
		case "tools/list":
			answer = `"result":{"tools":[` + definitions + `]}`
		case "tools/call":
			answer = `"result":{"content":[],"structuredContent":` + string(m.Params.Arguments) + `}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,` + answer + `}`))
	}
}

const foreignFile = "toolsets: {api: {private: true, mcp: {url: URL/mcp}}}\n"

// TestOrderOfParameters shows that one schema gives the same parameters in the same order, whatever the source of
// the tool is.
func TestOrderOfParameters(t *testing.T) {
	const schema = `{"type":"object","properties":{"source":{"type":"string"},"destination":{"type":"string"},"amount":{"type":"string"},"note":{"type":"string"},"label":{"type":"string"}},"required":["source","destination","amount"],"additionalProperties":false}`
	const want = "source destination amount note label"
	declared := regexp.MustCompile(`def (?:transfer|_)\((?:cls, )?([^)]*)\)`)
	check := func(name, text string) {
		t.Helper()
		found := declared.FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("%s: there is no function transfer in\n%s", name, text)
		}
		var names []string
		for parameter := range strings.SplitSeq(found[1], ",") {
			if name, _, ok := strings.Cut(strings.TrimSpace(parameter), ":"); ok {
				names = append(names, name)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: the parameters are %s, want %s", name, got, want)
		}
	}
	client, err := stubs.Python([]stubs.Tool{{Name: "transfer", Parameters: json.RawMessage(schema)}})
	if err != nil {
		t.Fatal(err)
	}
	check("a client's tool", client)
	const document = `{"openapi":"3.1.0","paths":{"/transfers":{"post":{"operationId":"transfer","requestBody":{"required":true,"content":{"application/json":{"schema":` + schema + `}}}}}}}`
	for name, file := range map[string]string{
		"MCP":     foreignFile,
		"HTTP":    `toolsets: {api: {http: {base_url: URL, tools: [{name: transfer, method: POST, path: /transfers, parameters: ` + schema + `}]}}}`,
		"OpenAPI": `toolsets: {api: {openapi: {file: api.json, base_url: URL}}}`,
	} {
		o := open(t, file, document, mcpOf(`{"name":"transfer","inputSchema":`+schema+`}`))
		toolset, err := o.Toolset(t.Context(), "api")
		if err != nil {
			t.Fatal(err)
		}
		module, err := stubs.PythonModule(toolset.ForPrograms())
		if err != nil {
			t.Fatal(err)
		}
		check(name, module)
	}
}

// TestOddSchemas shows that a schema that cannot be used as it is takes no tool away, and that the operator is told
// what is not checked.
func TestOddSchemas(t *testing.T) {
	definitions := `{"name":"good","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}},` +
		`{"name":"decimal","inputSchema":{"type":"object","properties":{"amount":{"type":"string","pattern":"^(?!x)[0-9]*$"}},"required":["amount"]}},` +
		`{"name":"tuple","inputSchema":{"type":"object","properties":{"pair":{"type":"array","items":[{"type":"string"},{"type":"number"}]}}}},` +
		`{"name":"endless","inputSchema":{"allOf":[{"$ref":"#"}]}},` +
		`{"name":"get-x","inputSchema":{"type":"object"}},{"name":"get_x","inputSchema":{"type":"object"}},` +
		`{"name":"` + strings.Repeat("n", 200) + `","inputSchema":{"type":"object"}}`
	o := open(t, foreignFile, "", mcpOf(definitions))
	if _, err := o.call(t, "good", `{"a": "x"}`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tool, input, fails string }{
		{"good", `{"a": 1}`, "a must be a text, not a whole number"},
		{"decimal", `{"amount": "x"}`, ""},
		{"decimal", `{}`, `the input must have "amount"`},
		{"tuple", `{"pair": ["a", 1]}`, ""},
		{"tuple", `{"pair": ["a", "b"]}`, "pair[1] must be a number, not a text"},
		{"endless", `{"any": "thing"}`, ""},
		{"get-x", `{}`, ""},
	} {
		got, err := o.call(t, c.tool, c.input)
		switch {
		case c.fails != "":
			mustFail(t, err, c.fails)
		case err != nil:
			t.Errorf("%s %s: %s, %v", c.tool, c.input, got, err)
		}
	}
	s := o.Toolsets()[0]
	notes := strings.Join(s.Notes, "\n")
	for _, want := range []string{
		`inputs of "decimal" are not checked against "properties.amount.pattern", which `,
		`inputs of "endless" are not checked: the schema has a part that refers to itself without end`,
		`the tool "get_x" is left out: in programs it would be the method get_x, as the tool "get-x" is; hide one of them`,
		`is left out: a name has at most 128 bytes`,
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %s:\n%s", want, notes)
		}
		if quoted := strings.ReplaceAll(want, `"`, `\"`); !strings.Contains(o.log.String(), quoted) {
			t.Errorf("the log does not say %s", want)
		}
	}
	if s.State != tools.Ready || len(s.Tools) != 5 {
		t.Errorf("got %+v", s)
	}
}

// TestNothingIsCompiled shows that a toolset that does not check its inputs does not look at its schemas.
func TestNothingIsCompiled(t *testing.T) {
	const file = "toolsets: {api: {private: true, validate: false, mcp: {url: URL/mcp}}}\n"
	o := open(t, file, "", mcpOf(`{"name":"odd","inputSchema":{"type":"nothing","pattern":"("},"outputSchema":{"type":5}}`))
	if got, err := o.call(t, "odd", `{"a": 1}`); err != nil || got != `{"a":1}` {
		t.Errorf("got %s, %v", got, err)
	}
	if s := o.Toolsets()[0]; s.State != tools.Ready || len(s.Notes) != 0 {
		t.Errorf("got %+v", s)
	}
}
