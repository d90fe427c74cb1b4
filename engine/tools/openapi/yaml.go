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
	pairs, err := w.pairs(n, depth)
	if err != nil {
		return err
	}
	w.out = append(w.out, '{')
	for i := 0; i+1 < len(pairs); i += 2 {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if err := w.text(pairs[i]); err != nil {
			return err
		}
		w.out = append(w.out, ':')
		if err := w.write(pairs[i+1], depth+1); err != nil {
			return err
		}
	}
	w.out = append(w.out, '}')
	return nil
}

// pairs returns the keys and values of a mapping. What the key << merges comes last, and only if the mapping does not
// have it itself.
func (w *yamlWriter) pairs(n *yaml.Node, depth int) ([]*yaml.Node, error) {
	if err := w.add(depth); err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(n.Content)/2)
	var pairs, merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge":
			merged = append(merged, value)
		case key.Kind != yaml.ScalarNode:
			return nil, fmt.Errorf("the document has a key in line %d that is no text", key.Line)
		case seen[key.Value]:
			return nil, fmt.Errorf("the document has two members of the name %.80q, the second one in line %d", key.Value, key.Line)
		default:
			seen[key.Value] = true
			pairs = append(pairs, key, value)
		}
	}
	for _, from := range merged {
		inner, err := w.merged(from, depth+1)
		if err != nil {
			return nil, err
		}
		for i := 0; i+1 < len(inner); i += 2 {
			if !seen[inner[i].Value] {
				seen[inner[i].Value] = true
				pairs = append(pairs, inner[i], inner[i+1])
			}
		}
	}
	return pairs, nil
}

// merged returns the keys and values of what the key << has: a mapping, or a list of them.
func (w *yamlWriter) merged(n *yaml.Node, depth int) ([]*yaml.Node, error) {
	if err := w.add(depth); err != nil {
		return nil, err
	}
	switch n.Kind {
	case yaml.AliasNode:
		return w.merged(n.Alias, depth+1)
	case yaml.MappingNode:
		pairs, err := w.pairs(n, depth)
		w.values += len(pairs) / 2 // They are there once more.
		return pairs, err
	case yaml.SequenceNode:
		var pairs []*yaml.Node
		for _, element := range n.Content {
			more, err := w.merged(element, depth+1)
			if err != nil {
				return nil, err
			}
			pairs = append(pairs, more...)
		}
		return pairs, nil
	default:
		return nil, fmt.Errorf("the document merges something in line %d that is no mapping", n.Line)
	}
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
