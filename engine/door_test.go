package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Nothing but core.MoveCall changes the state of a call.
func TestOneDoorForCalls(t *testing.T) {
	for at, names := range assigned(t, "core/call.go") {
		if last := names[len(names)-1]; last == "Stage" || last == "Answered" {
			t.Errorf("%s changes %s", at, last)
		}
	}
}

// Nothing but the ledger changes the record of an execution.
func TestOneDoorForRecords(t *testing.T) {
	for at, names := range assigned(t, "record.go") {
		if i := slices.Index(names, "record"); i > 0 {
			t.Errorf("%s changes %s", at, strings.Join(names, "."))
		}
	}
}

// assigned yields what the files of this package and of core, but one, assign to: where, and the names of a selector such as
// c.record.Pending.
func assigned(t *testing.T, except string) iter.Seq2[token.Position, []string] {
	t.Helper()
	var paths []string
	for _, pattern := range []string{"*.go", "core/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		paths = append(paths, found...)
	}
	files := token.NewFileSet()
	return func(yield func(token.Position, []string) bool) {
		for _, path := range paths {
			if path == except || strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for n := range ast.Preorder(file) {
				switch n := n.(type) {
				case *ast.AssignStmt:
					for _, left := range n.Lhs {
						if names := namesOf(left); len(names) > 0 && !yield(files.Position(left.Pos()), names) {
							return
						}
					}
				case *ast.IncDecStmt:
					if names := namesOf(n.X); len(names) > 0 && !yield(files.Position(n.Pos()), names) {
						return
					}
				}
			}
		}
	}
}

// namesOf returns the names of a selector, without indexes.
func namesOf(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.Ident:
		return []string{e.Name}
	case *ast.SelectorExpr:
		return append(namesOf(e.X), e.Sel.Name)
	case *ast.IndexExpr:
		return namesOf(e.X)
	default:
		return nil
	}
}
