package openapi

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// tablePath is the page whose table of documents TestRealDocuments checks.
const tablePath = "../../../docs/compatibility.md"

// A row of the table is a document, and what becomes of it.
type row struct {
	api, pack, file, choice, result string
}

// String returns the row as it stands in the table.
func (r row) String() string {
	return fmt.Sprintf("| %s | `%s` | `%s` | %s | %s |", r.api, r.pack, r.file, r.choice, r.result)
}

// rowOf matches a row of the table: its package is one of npm, PyPI or Go.
var rowOf = regexp.MustCompile("(?m)^\\| ([^|]+) \\| `((?:npm|pypi|go):[^`]+)` \\| `([^`]+)` \\| ([^|]+) \\| ([^|]+) \\|$")

// TestRealDocuments reads the documents of the table in docs/compatibility.md, which are fetched from their registries,
// and checks what becomes of them. It is skipped without FERMATA_TEST_COMPAT=1.
func TestRealDocuments(t *testing.T) {
	if os.Getenv("FERMATA_TEST_COMPAT") != "1" {
		return
	}
	page, err := os.ReadFile(tablePath)
	if err != nil {
		t.Fatal(err)
	}
	rows := rowOf.FindAllStringSubmatch(string(page), -1)
	if len(rows) < 15 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	root, fetched := t.TempDir(), map[string]string{}
	for _, found := range rows {
		r := row{found[1], found[2], found[3], found[4], found[5]}
		t.Run(r.api, func(t *testing.T) {
			if fetched[r.pack] == "" {
				fetched[r.pack] = fetch(t, root, r.pack)
			}
			doc, err := os.ReadFile(filepath.Join(fetched[r.pack], filepath.FromSlash(r.file)))
			if err != nil {
				t.Fatal(err)
			}
			var choice Choice
			if tags, found := strings.CutPrefix(r.choice, "tags: "); found {
				choice.Tags = strings.Split(tags, ", ")
			}
			start := time.Now()
			d, err := Read(doc, choice)
			took := time.Since(start)
			got := r
			if err != nil {
				got.result = "refused: " + strings.ReplaceAll(cutText(err.Error(), 75), "|", "/")
			} else {
				checkAll(t, d)
				got.result = fmt.Sprintf("%d tools, %d notes", len(d.Operations), len(d.Notes))
				for _, note := range d.Notes {
					t.Log(note)
				}
			}
			t.Logf("%d bytes in %s: %s", len(doc), took.Round(time.Millisecond), got.result)
			if got != r {
				t.Errorf("the row must be\n%s", got)
			}
		})
	}
}

// fetch fetches a package into a new directory below root, and returns the directory with its files.
func fetch(t *testing.T, root, pack string) string {
	t.Helper()
	registry, name, _ := strings.Cut(pack, ":")
	at := strings.LastIndex(name, "@")
	dir, err := os.MkdirTemp(root, "") //nolint:usetesting // packages are kept below root
	if err != nil {
		t.Fatal(err)
	}
	run := func(program string, args ...string) []byte {
		command := exec.CommandContext(t.Context(), program, args...)
		command.Dir = dir
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%s: %v: %s", program, err, out)
		}
		return out
	}
	switch registry {
	case "npm":
		run("npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", dir, name)
		return filepath.Join(dir, "node_modules", filepath.FromSlash(name[:at]))
	case "go":
		var module struct{ Dir string }
		if err := json.Unmarshal(run("go", "mod", "download", "-json", name), &module); err != nil {
			t.Fatal(err)
		}
		return module.Dir
	default:
		run("python3", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", dir, name[:at]+"=="+name[at+1:])
		wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
		if err != nil || len(wheels) != 1 {
			t.Fatalf("%d wheels, %v", len(wheels), err)
		}
		unzip(t, wheels[0], dir)
		return dir
	}
}

// unzip writes the OpenAPI documents of an archive into a directory.
func unzip(t *testing.T, archive, dir string) {
	t.Helper()
	files, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = files.Close() }()
	for _, f := range files.File {
		if !filepath.IsLocal(f.Name) || !strings.Contains(filepath.Base(f.Name), "openapi.") {
			continue
		}
		to := filepath.Join(dir, f.Name)
		from, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(io.LimitReader(from, MaxDocument))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o700)
		}
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
