package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"testing"

	"fermata/engine/core"
)

// constants returns the constants of a type that the engine declares.
func constants(t *testing.T, typeName string) (values []string) {
	t.Helper()
	sources, err := filepath.Glob("../engine/core/*.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("the engine has the files %v (%v)", sources, err)
	}
	for _, source := range sources {
		parsed, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			name, isName := spec.Type.(*ast.Ident)
			literal, isLiteral := spec.Values[0].(*ast.BasicLit)
			if isName && isLiteral && name.Name == typeName && literal.Kind == token.STRING {
				value, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, value)
			}
			return true
		})
	}
	return values
}

// Each way in which the engine ends executions has one ending, and there are no other endings.
func TestEveryEndingHasItsRow(t *testing.T) {
	ways := map[way]bool{}
	for _, s := range constants(t, "State") {
		switch state := core.State(s); state {
		case core.Running, core.Paused, core.Failed:
		default:
			ways[way{state: state}] = true
		}
	}
	for _, r := range constants(t, "Reason") {
		ways[way{core.Failed, core.Reason(r)}] = true
	}
	if len(ways) < 15 {
		t.Errorf("the engine has only %d ways to end an execution: is this how they are declared?", len(ways))
	}
	for w := range ways {
		e, ok := endings[w]
		if !ok || e.reply == nil && w.state != core.Completed {
			t.Errorf("an execution that ends as %+v has no ending", w)
		}
	}
	for w := range endings {
		if !ways[w] {
			t.Errorf("there is an ending for %+v, which the engine does not know", w)
		}
	}
}
