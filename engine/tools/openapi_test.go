package tools_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"fermata/engine/tools"
)

const document = `{"openapi": "3.1.0", "info": {"title": "Pets", "version": "1"}, "servers": [{"url": "URL/v2"}], "paths": {
	"/pets": {
		"get": {"operationId": "findPets", "summary": "Pets by tag.", "parameters": [{"name": "tags", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}}], "responses": {}},
		"post": {"operationId": "addPet", "requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}}}, "responses": {}}
	},
	"/pets/{id}": {"delete": {"operationId": "deletePet", "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}], "responses": {}}},
	"/photos": {"post": {"operationId": "addPhoto", "requestBody": {"required": true, "content": {"image/png": {}}}, "responses": {}}}
}}`

func TestOpenAPI(t *testing.T) {
	const file = `toolsets:
  api:
    private: true
    openapi:
      file: api.json
      headers: {X-Api-Key: "${KEY}"}
      tools: {deletePet: {hide: true}, addPet: {cost: 2, idempotent: true, approval: always}}
`
	o := open(t, file, document, echo)
	s := o.Toolsets()[0]
	var names []string
	for _, tool := range s.Tools {
		names = append(names, tool.Name)
	}
	if s.State != tools.Ready || s.Source != "openapi" || !slices.Equal(names, []string{"findPets", "addPet"}) || s.Tools[0].Description != "Pets by tag." {
		t.Errorf("got %+v", s)
	}
	if pet := s.Tools[1]; pet.Rules.Cost != 2 || !pet.Idempotent || !pet.Rules.NeedsApproval() || !json.Valid(pet.Input) {
		t.Errorf("addPet is %+v", pet)
	}
	if len(s.Notes) != 1 || !strings.HasPrefix(s.Notes[0], "addPhoto is left out: it ") {
		t.Errorf("notes: %q", s.Notes)
	}
	if got, err := o.call(t, "findPets", `{"tags": ["a", "b c"]}`); err != nil || !strings.Contains(got, `"uri":"/v2/pets?tags=a\u0026tags=b%20c"`) && !strings.Contains(got, `"uri":"/v2/pets?tags=a&tags=b%20c"`) {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := o.call(t, "addPet", `{"name": "Rex"}`); err != nil || !strings.Contains(got, `{\"name\":\"Rex\"}`) || strings.Contains(got, secret) {
		t.Errorf("got %s, %v", got, err)
	}
	_, err := o.call(t, "deletePet", `{"id": 1}`)
	mustFail(t, err, `the toolset api has no tool "deletePet"`)
}

// TestUnavailable opens toolsets that cannot be used. They do not affect the other toolsets of the file.
func TestUnavailable(t *testing.T) {
	const other = "  other: {private: true, http: {base_url: URL, tools: [{name: send, method: POST, path: /}]}}\n"
	for name, c := range map[string]struct{ openapi, document, want string }{
		"no document":  {"{file: api.json}", "{}", "the document is no OpenAPI document: it has no member openapi with the version"},
		"no server":    {"{file: api.json}", strings.Replace(document, "URL/v2", "", 1), "the OpenAPI document names no server; write base_url"},
		"no host":      {"{file: api.json}", strings.Replace(document, "URL/v2", "/v2", 1), `the OpenAPI document names the server "/v2" without a host; write base_url with the host and this path`},
		"no operation": {"{file: api.json, operations: [findPats]}", document, `the document has no operation "findPats"`},
		"no tool":      {"{file: api.json, tools: {findPats: {cost: 1}, removePet: {hide: true}}}", document, `its source has no tool "findPats", "removePet", which the toolsets file names`},
		"all hidden":   {"{file: api.json, operations: [findPets], tools: {findPets: {hide: true}}}", document, "no tool is left of it"},
		"a secret":     {"{file: api.json, operations: [findPets], headers: {X-Api-Key: '${KEY}'}}", strings.Replace(document, `"operationId": "findPets"`, `"operationId": "`+secret+`"`, 1), `the document has no operation "findPets"`},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t, "toolsets:\n  api:\n    private: true\n    openapi: "+c.openapi+"\n"+other, c.document, func(http.ResponseWriter, *http.Request) {})
			s := o.Toolsets()[0]
			if s.State != tools.Unavailable || s.Reason != c.want || len(s.Tools) != 0 {
				t.Errorf("got %+v", s)
			}
			_, err := o.call(t, "findPets", `{}`)
			mustFail(t, err, "the toolset api is unavailable: "+c.want)
			if !strings.Contains(o.log.String(), `msg="a toolset is unavailable" toolset=api`) {
				t.Errorf("the log has %s", o.log)
			}
			if _, err := o.Call(t.Context(), tools.Request{Toolset: "other", Tool: "send"}); err != nil {
				t.Error(err)
			}
		})
	}
}
