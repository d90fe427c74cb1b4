package tools_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"

	"fermata/engine/tools"
	"fermata/engine/tools/config"
)

// everything is a toolsets file with almost all that one may have.
const everything = `
toolsets:
  weather:
    title: Weather
    class: Weather
    description: Weather now.
    concurrency: 3
    private: true
    proxy: http://proxy.example.com:3128
    validate: false
    unmasked: true
    http:
      base_url: https://api.example.com
      headers: {X-Api-Key: a-secret-of-the-endpoint}
      timeout: 3s
      retries: 1
      tools:
        - {name: current, description: Now., method: GET, path: "/{city}", result: /data, cost: 1, idempotent: true, approval: always,
           callers: [code], lane: a, envelope: true, parameters: {type: object, properties: {city: {type: string}}, required: [city]}}
  petstore:
    openapi: {file: pets.json, base_url: https://pets.example.com, operations: [findPets], headers: {A: b}, tools: {findPets: {cost: 1}}}
  remote:
    shared: true
    mcp: {url: https://mcp.example.com/mcp, headers: {A: b}, tools: [one, two]}
  local:
    trusted: true
    mcp: {command: [cat, -u], env: {A: b}, timeout: 3s, tools: {one: {cost: 1, hide: false, text: true}}}
policies:
  some: {allow: [weather, remote.one], block: [petstore], mode: "on", max_cost: 1, max_day_cost: 2}
principals: {ada: some}
`

// TestEveryShape puts something else in the place of each part of a file. It is a mistake with a line, or
// toolsets that can be opened, and nothing falls over.
func TestEveryShape(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "toolsets.yaml")
	write := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("pets.json", []byte(`{"openapi":"3.0.0","paths":{"/pets":{"get":{"operationId":"findPets","responses":{}}}}}`))
	others := []*yaml.Node{
		{Kind: yaml.MappingNode},
		{Kind: yaml.SequenceNode},
		{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"},
		{Kind: yaml.ScalarNode, Tag: "!!int", Value: "7"},
		{Kind: yaml.ScalarNode, Tag: "!!str", Value: "seven"},
		{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"},
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(everything), &document); err != nil {
		t.Fatal(err)
	}
	tried := 0
	try := func(place string) {
		text, err := yaml.Marshal(&document)
		if err != nil {
			t.Fatal(err)
		}
		write("toolsets.yaml", text)
		tried++
		file, err := config.Read(path, os.LookupEnv)
		for _, m := range config.Mistakes(err) {
			if m.Line == 0 && !bytes.Contains([]byte(m.Text), []byte("names no toolset")) && !bytes.Contains([]byte(m.Text), []byte("is empty")) {
				t.Errorf("%s: the mistake has no line: %v", place, m)
			}
		}
		if err != nil {
			if tried == 1 {
				t.Fatalf("the whole file: %v", err)
			}
			return
		}
		opened := tools.Open(t.Context(), tools.Options{File: file})
		for i, toolset := range opened.Toolsets() {
			if m := file.Toolsets[i].Unusable(toolset.Reason); toolset.State == tools.Unavailable && (m.Line == 0 || m.File != path) {
				t.Errorf("%s: the mistake has no line: %v", place, m)
			}
		}
		if err := opened.Close(t.Context()); err != nil {
			t.Errorf("%s: %v", place, err)
		}
	}
	var visit func(node *yaml.Node, place string)
	visit = func(node *yaml.Node, place string) {
		was := *node
		for _, other := range others {
			*node = *other
			try(place)
		}
		*node = was
		for i, part := range was.Content {
			if was.Kind != yaml.MappingNode || i%2 == 1 {
				visit(part, place+"."+was.Content[max(0, i-1)].Value)
				continue
			}
			node.Content = append(append([]*yaml.Node{}, was.Content[:i]...), was.Content[i+2:]...) // It is left out.
			try(place + " without " + part.Value)
			*node = was
		}
	}
	try("the whole file")
	visit(document.Content[0], "")
	if tried < 500 {
		t.Errorf("%d files were read, want more", tried)
	}
}
