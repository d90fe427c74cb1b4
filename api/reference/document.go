package reference

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A document is what the page shows of an OpenAPI document, in the order in which that has it.
type document struct {
	Info struct {
		Title       string `yaml:"title"`
		Version     string `yaml:"version"`
		Summary     string `yaml:"summary"`
		Description string `yaml:"description"`
	} `yaml:"info"`
	Tags []struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
	} `yaml:"tags"`
	Paths      list[path] `yaml:"paths"`
	Components struct {
		Security   list[scheme]    `yaml:"securitySchemes"`
		Parameters list[parameter] `yaml:"parameters"`
		Responses  list[response]  `yaml:"responses"`
		Schemas    list[schema]    `yaml:"schemas"`
	} `yaml:"components"`
}

type path struct {
	Parameters []parameter `yaml:"parameters"`
	Get        *operation  `yaml:"get"`
	Post       *operation  `yaml:"post"`
	Delete     *operation  `yaml:"delete"`
	Head       *operation  `yaml:"head"`
}

type operation struct {
	Tags        []string       `yaml:"tags"`
	ID          string         `yaml:"operationId"`
	Summary     string         `yaml:"summary"`
	Description string         `yaml:"description"`
	Parameters  []parameter    `yaml:"parameters"`
	Body        *body          `yaml:"requestBody"`
	Responses   list[response] `yaml:"responses"`
}

type parameter struct {
	Ref         string `yaml:"$ref"`
	Name        string `yaml:"name"`
	In          string `yaml:"in"`
	Description string `yaml:"description"`
	Required    bool   `yaml:"required"`
	Schema      schema `yaml:"schema"`
}

type body struct {
	Description string        `yaml:"description"`
	Content     list[content] `yaml:"content"`
}

type response struct {
	Ref         string        `yaml:"$ref"`
	Description string        `yaml:"description"`
	Content     list[content] `yaml:"content"`
}

type content struct {
	Schema   *schema       `yaml:"schema"`
	Examples list[example] `yaml:"examples"`
}

type example struct {
	Summary string `yaml:"summary"`
	Value   any    `yaml:"value"`
}

type scheme struct {
	Description string `yaml:"description"`
}

// A schema is what the page shows of a JSON Schema.
type schema struct {
	Ref         string       `yaml:"$ref"`
	Type        texts        `yaml:"type"`
	Description string       `yaml:"description"`
	Format      string       `yaml:"format"`
	Pattern     string       `yaml:"pattern"`
	Enum        []any        `yaml:"enum"`
	Const       any          `yaml:"const"`
	Default     any          `yaml:"default"`
	Minimum     any          `yaml:"minimum"`
	Maximum     any          `yaml:"maximum"`
	MinLength   any          `yaml:"minLength"`
	MaxLength   any          `yaml:"maxLength"`
	MinItems    any          `yaml:"minItems"`
	MaxItems    any          `yaml:"maxItems"`
	MaxMembers  any          `yaml:"maxProperties"`
	Items       *schema      `yaml:"items"`
	AnyOf       []schema     `yaml:"anyOf"`
	OneOf       []schema     `yaml:"oneOf"`
	Required    []string     `yaml:"required"`
	Properties  list[schema] `yaml:"properties"`
}

// A list is a mapping in the order of the document.
type list[T any] []entry[T]

type entry[T any] struct {
	Name  string
	Value T
}

// UnmarshalYAML implements yaml.Unmarshaler. Members that are merged in (<<) come first, and those that
// the mapping has itself win.
func (l *list[T]) UnmarshalYAML(n *yaml.Node) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			var merged list[T]
			if err := value.Decode(&merged); err != nil {
				return err
			}
			for _, e := range merged {
				l.set(e)
			}
			continue
		}
		e := entry[T]{Name: key.Value}
		if err := value.Decode(&e.Value); err != nil {
			return err
		}
		l.set(e)
	}
	return nil
}

func (l *list[T]) set(e entry[T]) {
	for i := range *l {
		if (*l)[i].Name == e.Name {
			(*l)[i] = e
			return
		}
	}
	*l = append(*l, e)
}

// Texts are one text or several.
type texts []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *texts) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*t = texts{n.Value}
		return nil
	}
	return n.Decode((*[]string)(t))
}

func parse(source []byte) (document, error) {
	var d document
	if err := yaml.Unmarshal(source, &d); err != nil {
		return document{}, fmt.Errorf("reference: read openapi.yaml: %w", err)
	}
	return d, nil
}

// asJSON returns a document of YAML as JSON.
func asJSON(source []byte) ([]byte, error) {
	var all map[string]any
	err := yaml.Unmarshal(source, &all)
	if err != nil {
		return nil, fmt.Errorf("reference: read openapi.yaml: %w", err)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("reference: openapi.yaml has no form in JSON: %w", err)
	}
	return text, nil
}

// refName returns the name of the component to which a $ref leads.
func refName(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// Document returns the OpenAPI document as JSON.
func Document() ([]byte, error) { return asJSON(source) }
