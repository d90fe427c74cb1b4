package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestPlan compares the plan of the house in README.md with the imports of the code: an arrow
// that is not in the plan is a decision that somebody has to make.
func TestPlan(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	planned, err := readPlan(string(readme))
	if err != nil {
		t.Fatal(err)
	}
	imports := listImports(t)
	for pkg, found := range imports {
		if want := planned[pkg]; !slices.Equal(found, want) {
			t.Errorf("%s imports\n\t%s\nthe plan in README.md says\n\t%s", pkg, strings.Join(found, ", "), strings.Join(want, ", "))
		}
		delete(planned, pkg)
	}
	for pkg := range planned {
		t.Errorf("the plan in README.md has %s, which imports nothing of the module, or is not there", pkg)
	}
}

// readPlan reads the lines "package → package, package", of which long ones go on in the next
// line.
func readPlan(readme string) (map[string][]string, error) {
	_, section, found := strings.Cut(readme, "\n## Plan of the house\n")
	_, block, fenced := strings.Cut(section, "\n```\n")
	block, _, closed := strings.Cut(block, "\n```\n")
	if !found || !fenced || !closed {
		return nil, errors.New("README.md has no plan of the house")
	}
	plan, pkg := map[string][]string{}, ""
	for line := range strings.SplitSeq(block, "\n") {
		left, right, arrow := strings.Cut(line, "→")
		if arrow {
			pkg = strings.TrimSpace(left)
		} else {
			right = line
		}
		for name := range strings.SplitSeq(right, ",") {
			if name = strings.TrimSpace(name); name != "" {
				plan[pkg] = append(plan[pkg], name)
			}
		}
	}
	for _, names := range plan {
		slices.Sort(names)
	}
	return plan, nil
}

// listImports returns what the packages of the module import of each other, sorted, without
// those that only tests use.
func listImports(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	for _, p := range listPackages(t) {
		name, inside := strings.CutPrefix(p.ImportPath, p.Module.Path+"/")
		if !inside || strings.HasPrefix(name, "tests/") || name == "tests" || strings.HasSuffix(name, "test") {
			continue
		}
		for _, path := range p.Imports {
			if other, inside := strings.CutPrefix(path, p.Module.Path+"/"); inside {
				imports[name] = append(imports[name], other)
			}
		}
		slices.Sort(imports[name])
	}
	return imports
}

// A listed is a package, as the go command lists it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles, Imports        []string
	Module                  struct {
		Path string
		Main bool
	}
}

// listPackages returns the packages of the module. With the flags -deps and -export it returns those that they import,
// too, and the files that have what each declares.
func listPackages(t *testing.T, flags ...string) (packages []listed) {
	t.Helper()
	args := append([]string{"list", "-json=ImportPath,Dir,Export,GoFiles,Imports,Module"}, flags...)
	c := exec.CommandContext(t.Context(), "go", append(args, "./...")...)
	c.Dir = "../.."
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(fmt.Errorf("read what go list says: %w", err))
		}
		packages = append(packages, p)
	}
}
