package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	v2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// parse reads JSON or YAML into maps, lists, texts and json.Numbers.
func parse(doc []byte) (map[string]any, error) {
	if len(doc) > MaxDocument {
		return nil, fmt.Errorf("the document has %d bytes; at most %d are allowed", len(doc), MaxDocument)
	}
	doc = bytes.TrimPrefix(doc, []byte("\ufeff"))
	b := &builder{}
	var v any
	var err error
	if trimmed := bytes.TrimSpace(doc); len(trimmed) > 0 && trimmed[0] == '{' {
		v, err = b.json(doc)
	} else {
		v, err = b.yaml(doc)
	}
	if err != nil {
		return nil, err
	}
	tree, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("the document is no OpenAPI document: it must be an object")
	}
	return tree, nil
}

// A builder builds a tree of values, and counts them.
type builder struct {
	values int
}

// count counts a value at a depth.
func (b *builder) count(depth int) error {
	if b.values++; b.values > maxValues {
		return fmt.Errorf("the document has more than %d values", maxValues)
	}
	if depth > maxDepth {
		return fmt.Errorf("the document has more than %d levels", maxDepth)
	}
	return nil
}

// json reads strict JSON.
func (b *builder) json(doc []byte) (v any, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(doc))
	err = v2.UnmarshalDecode(d, &v, v2.WithUnmarshalers(v2.UnmarshalFromFunc(b.jsonValue)))
	if err == nil {
		if _, more := d.ReadToken(); !errors.Is(more, io.EOF) {
			err = errors.New("the document has something after its end")
		}
	}
	if refused, ok := errors.AsType[*v2.SemanticError](err); ok {
		return nil, refused.Err
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		line := 1 + bytes.Count(doc[:min(int(syntactic.ByteOffset), len(doc))], []byte("\n"))
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return nil, fmt.Errorf("the document has two members of one name at %s, line %d", syntactic.JSONPointer, line)
		}
		return nil, fmt.Errorf("the document is not valid JSON at line %d", line)
	}
	return v, err
}

// jsonValue counts a value, and reads it if it is a number. All others are left to the library.
func (b *builder) jsonValue(d *jsontext.Decoder, v *any) error {
	if err := b.count(d.StackDepth()); err != nil {
		return err
	}
	if d.PeekKind() != jsontext.KindNumber {
		return errors.ErrUnsupported
	}
	token, err := d.ReadToken()
	if err == nil {
		*v, err = number(token.String())
	}
	return err
}

// number refuses numbers with which a computation would need a lot of memory.
func number(digits string) (any, error) {
	if len(digits) > 1000 {
		return nil, errors.New("the document has a number of more than 1000 characters")
	}
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		if n, err := strconv.Atoi(digits[i+1:]); err != nil || n > 300 || n < -300 {
			return nil, errors.New("the document has a number with an exponent beyond 300")
		}
	}
	return json.Number(digits), nil
}

// yaml reads YAML without anchors, aliases, merge keys and tags, which no document needs.
func (b *builder) yaml(doc []byte) (any, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(doc, &root); err != nil {
		return nil, fmt.Errorf("the document is not valid YAML: %.200s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if root.Kind != yaml.DocumentNode || len(root.Content) != 1 {
		return nil, errors.New("the document is empty")
	}
	return b.yamlValue(root.Content[0], 0)
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

func (b *builder) yamlValue(n *yaml.Node, depth int) (any, error) {
	if err := b.count(depth); err != nil {
		return nil, err
	}
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return nil, fmt.Errorf("the document has an anchor or alias of YAML in line %d; write it out, or use $ref", n.Line)
	}
	switch n.Kind {
	case yaml.MappingNode:
		object := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || key.Anchor != "" || key.ShortTag() == "!!merge" {
				return nil, fmt.Errorf("the document has a key in line %d that is no text", key.Line)
			}
			if _, twice := object[key.Value]; twice {
				return nil, fmt.Errorf("the document has two members of the name %.80q, the second one in line %d", key.Value, key.Line)
			}
			v, err := b.yamlValue(n.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			object[key.Value] = v
		}
		return object, nil
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, element := range n.Content {
			v, err := b.yamlValue(element, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	default:
	}
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true"), nil
	case "!!int", "!!float":
		if jsonNumber.MatchString(n.Value) {
			return number(n.Value)
		}
	}
	return n.Value, nil
}

// pointerEscape writes a name as a part of a JSON Pointer.
func pointerEscape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
