package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// maxMethods is how many methods a type may have that does not say why it has more. Its comment says so with the words
// "a method for each".
const maxMethods = 15

// crowded are types that have too many methods and no reason, with how many they have. They may only lose some.
var crowded = map[string]int{
	"api/mcp.face": 35,
}

// TestMethods finds the types with more methods than anybody keeps in mind.
func TestMethods(t *testing.T) {
	found := map[string]int{}
	for _, p := range listPackages(t) {
		folder := strings.TrimPrefix(p.ImportPath, p.Module.Path+"/")
		if strings.HasPrefix(folder, "tests/") {
			continue
		}
		methods, reasons := methodsIn(t, p.Dir, p.GoFiles)
		for name, n := range methods {
			if n > maxMethods && !reasons[name] {
				found[folder+"."+name] = n
			}
		}
	}
	for name, n := range found {
		if most, known := crowded[name]; !known {
			t.Errorf("%s has %d methods, and its comment gives no reason", name, n)
		} else if n != most {
			t.Errorf("%s has %d methods, and the list says %d", name, n, most)
		}
	}
	for name := range crowded {
		if found[name] == 0 {
			t.Errorf("%s is in the list and has no more than %d methods, or a reason", name, maxMethods)
		}
	}
}

// methodsIn counts the methods of the types in a folder, and tells which types say why they have many.
func methodsIn(t *testing.T, dir string, names []string) (methods map[string]int, reasons map[string]bool) {
	t.Helper()
	methods, reasons = map[string]int{}, map[string]bool{}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range file.Decls {
			switch d := declared.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					methods[receiver(d.Recv.List[0].Type)]++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if named, ok := spec.(*ast.TypeSpec); ok && strings.Contains(d.Doc.Text(), "a method for each") {
						reasons[named.Name.Name] = true
					}
				}
			}
		}
	}
	return methods, reasons
}

// receiver returns the name of the type of a receiver.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	default:
		return ""
	}
}
