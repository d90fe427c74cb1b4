package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestLogsPage checks that docs/logs.md tells of each message and each attribute that the code can
// write to the log.
func TestLogsPage(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "docs", "logs.md"))
	if err != nil {
		t.Fatal(err)
	}
	// The page breaks its lines where it likes.
	text := strings.Join(strings.Fields(string(page)), " ")
	found := 0
	for _, dir := range []string{"api", "cmd", "continuation", "engine"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && (d.Name() == "storetest" || d.Name() == "sandboxtest" || d.Name() == "enginetest") {
				return filepath.SkipDir
			}
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			messages, attributes := logged(t, path)
			for _, m := range messages {
				found++
				if !strings.Contains(text, "`"+m+"`") {
					t.Errorf("%s: docs/logs.md lacks the message %q", path, m)
				}
			}
			for _, a := range attributes {
				found++
				if !strings.Contains(text, "`"+a+"`") {
					t.Errorf("%s: docs/logs.md lacks the attribute %q", path, a)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 100 {
		t.Errorf("the code has %d messages and attributes, want more: the test has not found them", found)
	}
}

// logged returns the messages and the attributes that a file of Go can write to the log.
func logged(t *testing.T, path string) (messages, attributes []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	literal := func(list *[]string, args []ast.Expr, at ...int) {
		for _, i := range at {
			if i < len(args) {
				if l, ok := args[i].(*ast.BasicLit); ok && l.Kind == token.STRING {
					s, _ := strconv.Unquote(l.Value)
					*list = append(*list, s)
				}
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasSuffix(path, "engine/log.go") {
			literal(&messages, spec.Values, 0) // The words are constants there.
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if name(call.Fun) == "add" && strings.HasSuffix(path, "api/line.go") {
			literal(&attributes, call.Args, 0)
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		on := name(method.X)
		switch {
		case on == "slog":
			literal(&attributes, call.Args, 0)
		case method.Sel.Name == "log" && strings.HasSuffix(path, "engine/log.go"):
			literal(&messages, call.Args, 1)
		case !strings.HasSuffix(strings.ToLower(on), "log"):
		case method.Sel.Name == "With":
			literal(&attributes, call.Args, 0, 2, 4)
		case method.Sel.Name == "LogAttrs":
			literal(&messages, call.Args, 2)
		case method.Sel.Name == "Log":
			literal(&messages, call.Args, 2)
			literal(&attributes, call.Args, 3, 5, 7, 9, 11)
		default:
			literal(&messages, call.Args, 0)
			literal(&attributes, call.Args, 1, 3, 5, 7, 9)
		}
		return true
	})
	return messages, attributes
}

// name returns the last name of an expression.
func name(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	default:
		return ""
	}
}
