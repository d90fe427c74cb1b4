package reference_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// textsAt tells which arguments of a function are the texts of errors that clients get.
var textsAt = map[string][]int{
	"BadRequest": {0}, "BadRequestf": {0}, "permanent": {0}, "unavailable": {0},
	"tooMany": {0}, "tooManyReaders": {0}, "says": {1}, "counts": {1},
}

// textMembers are the members of the structs for errors whose values clients get.
var textMembers = map[string]bool{"Text": true, "Message": true, "Details": true}

// unheard are texts that only the log has.
var unheard = map[string]bool{"Client closed the request": true}

var (
	verb     = regexp.MustCompile(`%[-+# 0]*[\d*]*(?:\.[\d*]*)?[a-zA-Z]`)
	codeSpan = regexp.MustCompile("`([^`]+)`")
)

// TestErrors looks for the text of every error of the code in the document: it stands there between
// backquotes, with … for what varies.
func TestErrors(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, span := range codeSpan.FindAllStringSubmatch(string(text), -1) {
		documented[span[1]] = true
	}
	found := 0
	for _, folder := range []string{"..", "../librechat", "../live"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range textsIn(tree) {
				form := textOf(e)
				if strings.Trim(form, "… ") == "" || unheard[form] {
					continue // The text comes from elsewhere, or from nowhere.
				}
				found++
				if !mentions(documented, form) {
					t.Errorf("%s: api/reference/openapi.yaml does not have the error `%s`: add it to the description of the response that it is in, "+
						"between backquotes, with … for what varies", set.Position(e.Pos()), form)
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("found the texts of %d errors, want more than 100", found)
	}
}

// textsIn returns the expressions in a file whose values clients get as texts of errors.
func textsIn(tree *ast.File) (all []ast.Expr) {
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if nameOf(n.Fun) == "refuse" && len(n.Args) == 2 { // A query refuses a parameter with what it must be.
				must := &ast.BasicLit{ValuePos: n.Pos(), Kind: token.STRING, Value: strconv.Quote(" must ")}
				all = append(all, &ast.BinaryExpr{X: &ast.BinaryExpr{X: n.Args[0], Op: token.ADD, Y: must}, Op: token.ADD, Y: n.Args[1]})
			}
			for _, at := range textsAt[nameOf(n.Fun)] {
				if at < len(n.Args) {
					all = append(all, n.Args[at])
				}
			}
		case *ast.CompositeLit:
			kind := nameOf(n.Type)
			for i, e := range n.Elts {
				if pair, ok := e.(*ast.KeyValueExpr); ok && kind != "Attr" && textMembers[nameOf(pair.Key)] {
					all = append(all, pair.Value)
				} else if kind == "Reply" && i == 1 {
					all = append(all, e)
				}
			}
		}
		return true
	})
	return all
}

func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.StarExpr:
		return nameOf(e.X)
	}
	return ""
}

// textOf returns the text that an expression makes, with … for what it does not tell.
func textOf(e ast.Expr) string {
	const varies = "…"
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return strings.ReplaceAll(verb.ReplaceAllString(text, varies), varies+varies, varies)
		}
	case *ast.BinaryExpr:
		return strings.ReplaceAll(textOf(e.X)+textOf(e.Y), varies+varies, varies)
	case *ast.CallExpr:
		if nameOf(e.Fun) == "Sprintf" {
			return textOf(e.Args[0])
		}
		if nameOf(e.Fun) == "Or" && len(e.Args) == 2 {
			return textOf(e.Args[1])
		}
	case *ast.ParenExpr:
		return textOf(e.X)
	}
	return varies
}

// mentions reports whether one of the texts of a document has the form of an error. What varies may be
// anything in both.
func mentions(documented map[string]bool, form string) bool {
	if documented[form] {
		return true
	}
	anything := strings.ReplaceAll(regexp.QuoteMeta(form), "…", ".+")
	pattern := regexp.MustCompile("^" + anything + "$")
	for text := range documented {
		if pattern.MatchString(text) {
			return true
		}
	}
	return false
}
