package openapi

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// fromYAML returns a document in YAML as JSON. What an alias stands for is written out, and counts each time.
func fromYAML(doc []byte) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(doc, &root); err != nil {
		return nil, fmt.Errorf("the document is not valid YAML: %.200s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if root.Kind != yaml.DocumentNode || len(root.Content) != 1 {
		return nil, errors.New("the document is empty")
	}
	w := &yamlWriter{out: make([]byte, 0, len(doc))}
	err := w.write(root.Content[0], 0)
	return w.out, err
}

// A yamlWriter writes nodes of YAML as JSON.
type yamlWriter struct {
	out []byte
	count
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// write writes a node at a depth.
func (w *yamlWriter) write(n *yaml.Node, depth int) error {
	if err := w.add(depth); err != nil {
		return err
	}
	if len(w.out) > 4*MaxDocument {
		return fmt.Errorf("the document has more than %d bytes when its aliases are written out", 4*MaxDocument)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return w.write(n.Alias, depth+1) // An alias within what it stands for has too many levels.
	case yaml.MappingNode:
		return w.mapping(n, depth)
	case yaml.SequenceNode:
		w.out = append(w.out, '[')
		for i, element := range n.Content {
			if i > 0 {
				w.out = append(w.out, ',')
			}
			if err := w.write(element, depth+1); err != nil {
				return err
			}
		}
		w.out = append(w.out, ']')
		return nil
	default:
		return w.scalar(n)
	}
}

// mapping writes a mapping. Its keys are texts, whatever they look like.
func (w *yamlWriter) mapping(n *yaml.Node, depth int) error {
	seen := make(map[string]bool, len(n.Content)/2)
	w.out = append(w.out, '{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			return fmt.Errorf("the document has a key in line %d that is no text", key.Line)
		}
		if seen[key.Value] {
			return fmt.Errorf("the document has two members of the name %.80q, the second one in line %d", key.Value, key.Line)
		}
		seen[key.Value] = true
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if err := w.text(key); err != nil {
			return err
		}
		w.out = append(w.out, ':')
		if err := w.write(n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	w.out = append(w.out, '}')
	return nil
}

// scalar writes null, a boolean or a number if JSON has it, and a text otherwise.
func (w *yamlWriter) scalar(n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!null":
		w.out = append(w.out, "null"...)
		return nil
	case "!!bool":
		w.out = append(w.out, strings.ToLower(n.Value)...)
		return nil
	case "!!int", "!!float":
		if jsonNumber.MatchString(n.Value) {
			w.out = append(w.out, n.Value...)
			return checkNumber(n.Value)
		}
	}
	return w.text(n)
}

// text writes the text of a scalar.
func (w *yamlWriter) text(n *yaml.Node) error {
	out, err := jsontext.AppendQuote(w.out, n.Value)
	if err != nil {
		return fmt.Errorf("the document has a text in line %d that is not UTF-8", n.Line)
	}
	w.out = out
	return nil
}
