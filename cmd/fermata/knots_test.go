package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxKnot is how many files of a package may all lead to each other, and maxHeart the same for the packages in which
// executions live.
const (
	maxKnot  = 10
	maxHeart = 8
)

// heart are the packages in which executions live.
var heart = []string{"engine", "engine/core", "engine/cluster", "engine/lanes", "engine/quota", "engine/requests"}

// TestKnots finds in each package the largest set of files of which each one needs, maybe by way of others, what every
// other one declares: functions, types, methods, fields. Such a set can only be understood as a whole.
func TestKnots(t *testing.T) {
	exports, product := map[string]string{}, []listed{}
	for _, p := range listPackages(t, "-deps", "-export") {
		exports[p.ImportPath] = p.Export
		if p.Module.Main && !strings.Contains(p.ImportPath, "/tests/") {
			product = append(product, p)
		}
	}
	files := token.NewFileSet()
	imports := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range product {
		arrows, err := arrowsOf(files, imports, p.ImportPath, p.Dir, p.GoFiles)
		if err != nil {
			t.Fatal(err)
		}
		most := maxKnot
		if slices.Contains(heart, strings.TrimPrefix(p.ImportPath, p.Module.Path+"/")) {
			most = maxHeart
		}
		if found := largestKnot(arrows); found > most {
			t.Errorf("%s has a knot of %d files, and may have one of %d", p.ImportPath, found, most)
		}
	}
}

// arrowsOf returns for each file of a package the files that declare what it uses.
func arrowsOf(files *token.FileSet, imports types.Importer, path, dir string, names []string) (map[string]map[string]bool, error) {
	var parsed []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(files, filepath.Join(dir, name), nil, 0)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, file)
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imports}
	pkg, err := config.Check(path, files, parsed, &info)
	if err != nil {
		return nil, err
	}
	arrows := map[string]map[string]bool{}
	for used, object := range info.Uses {
		if object.Pkg() != pkg || !object.Pos().IsValid() {
			continue
		}
		from, to := files.Position(used.Pos()).Filename, files.Position(object.Pos()).Filename
		if arrows[from] == nil {
			arrows[from] = map[string]bool{}
		}
		arrows[from][to] = true
	}
	return arrows, nil
}

// largestKnot returns the size of the largest strongly connected set.
func largestKnot(arrows map[string]map[string]bool) (largest int) {
	reached := map[string]map[string]bool{}
	for from := range arrows {
		reached[from] = map[string]bool{}
		reach(arrows, from, reached[from])
	}
	for one := range reached {
		size := 0
		for other := range reached[one] {
			if reached[other][one] {
				size++
			}
		}
		largest = max(largest, size)
	}
	return largest
}

// reach adds what a file leads to.
func reach(arrows map[string]map[string]bool, from string, seen map[string]bool) {
	for to := range arrows[from] {
		if !seen[to] {
			seen[to] = true
			reach(arrows, to, seen)
		}
	}
}
