package reference_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"fermata/api"
	"fermata/api/console"
	"fermata/api/librechat"
	"fermata/api/live"
	"fermata/api/mcp"
	"fermata/api/reference"
	"fermata/api/reference/referencetest"
	"fermata/api/timelines"
	"fermata/api/toolsets"
)

// newRouter returns a router with all public routes. Their handlers have nothing that they could use.
func newRouter(t *testing.T) *api.Router {
	t.Helper()
	r := api.New(api.Options{Log: slog.New(slog.DiscardHandler)})
	r.Health("1")
	librechat.Register(r, librechat.Options{Files: struct{ librechat.Files }{}})
	live.Register(r, live.Options{})
	timelines.New(nil, nil, "").Register(r, nil)
	mcp.Register(r, mcp.New(mcp.Options{}))
	toolsets.Register(r, toolsets.Options{})
	toolsets.RegisterUsage(r, nil)
	if err := console.Register(r); err != nil {
		t.Fatal(err)
	}
	reference.Register(r, reference.Options{Version: "1", Console: true})
	return r
}

func load(t *testing.T) *referencetest.Document {
	t.Helper()
	d, err := referencetest.Load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestRoutes compares the routes of the server with those of the document.
func TestRoutes(t *testing.T) {
	t.Parallel()
	parameter := regexp.MustCompile(`:(\w+)`)
	served := map[string]bool{}
	for _, route := range newRouter(t).Routes() {
		path := parameter.ReplaceAllString(route.Path, "{$1}")
		if path != "/v1" {
			path = strings.TrimPrefix(path, "/v1")
		}
		served[route.Method+" "+path] = true
	}
	documented := load(t).Routes()
	for _, route := range documented {
		if !served[route] {
			t.Errorf("api/reference/openapi.yaml has %s, which the server has not: take it out", route)
		}
	}
	for route := range served {
		if !slices.Contains(documented, route) {
			t.Errorf("the server has %s: add it to api/reference/openapi.yaml", route)
		}
	}
}

// TestForm compares the document with the schema that the OpenAPI Initiative has published for
// version 3.1 (https://spec.openapis.org/oas/3.1/schema).
func TestForm(t *testing.T) {
	t.Parallel()
	text, err := reference.Document()
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	form, err := jsonschema.NewCompiler().Compile("testdata/openapi-3.1.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := form.Validate(document); err != nil {
		t.Errorf("api/reference/openapi.yaml is no OpenAPI 3.1: %v", err)
	}
}

// TestSchemas uses every schema of the document once, and compares the examples with theirs.
func TestSchemas(t *testing.T) {
	t.Parallel()
	text, err := reference.Document()
	if err != nil {
		t.Fatal(err)
	}
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	d := load(t)
	examples := 0
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")
	var walk func(pointer string, v any)
	walk = func(pointer string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok && !strings.HasPrefix(ref, "#/components/") {
				t.Errorf("%s: $ref = %q, want a component", pointer, ref)
			}
			list, _ := v["examples"].(map[string]any)
			for name, example := range list {
				examples++
				example, _ := example.(map[string]any)
				if err := d.CheckValue(pointer+"/schema", example["value"]); err != nil {
					t.Errorf("%s: the example %s: %v", pointer, name, err)
				}
			}
			for name, member := range v {
				if name == "schema" || strings.HasSuffix(pointer, "/components/schemas") {
					if err := compiles(d, pointer+"/"+escape.Replace(name)); err != nil {
						t.Errorf("api/reference/openapi.yaml: %v", err)
					}
				}
				walk(pointer+"/"+escape.Replace(name), member)
			}
		case []any:
			for i, entry := range v {
				walk(fmt.Sprintf("%s/%d", pointer, i), entry)
			}
		}
	}
	walk("", root)
	if examples == 0 {
		t.Error("found no example, want some")
	}
}

// compiles returns an error if a schema cannot be used. What it says about a value does not matter.
func compiles(d *referencetest.Document, pointer string) error {
	if err := d.CheckValue(pointer, nil); err != nil && strings.Contains(err.Error(), "no usable schema") {
		return err
	}
	return nil
}

// TestPages asks for what the package serves, compressed or not, and for headers alone.
func TestPages(t *testing.T) {
	t.Parallel()
	r := newRouter(t)
	for _, c := range []struct{ path, accept, media, has string }{
		{"/", "", "application/json", `{"service":"fermata","version":"1","docs":"/docs","openapi":"/openapi.json","console":"/console"}`},
		{"/", "text/html,*/*;q=0.8", "text/html; charset=UTF-8", `<a href="/docs">`},
		{"/openapi.json", "text/html", "application/json", `"openapi":"3.1.0"`},
		{"/docs", "", "text/html; charset=UTF-8", `<a href="#badStart">every start</a>`},
	} {
		w := httptest.NewRecorder()
		q := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, http.NoBody)
		if c.accept != "" {
			q.Header.Set("Accept", c.accept)
		}
		r.ServeHTTP(w, q)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != c.media || !strings.Contains(w.Body.String(), c.has) {
			t.Errorf("GET %s for %q: got %d %s %.200s, want %s with %s", c.path, c.accept, w.Code, w.Header().Get("Content-Type"), w.Body, c.media, c.has)
		}
		if policy := w.Header().Get("Content-Security-Policy"); strings.HasPrefix(c.media, "text/html") != strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") {
			t.Errorf("GET %s for %q: the policy is %q", c.path, c.accept, policy)
		}
	}
}

// TestLinks checks that the links within the page lead somewhere, and that it needs nothing else.
func TestLinks(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	newRouter(t).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/docs", http.NoBody))
	page := w.Body.String()
	places := map[string]bool{}
	for _, id := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if places[id[1]] {
			t.Errorf("two places are called %q", id[1])
		}
		places[id[1]] = true
	}
	links := regexp.MustCompile(` (?:href|src)="([^"]*)"`).FindAllStringSubmatch(page, -1)
	for _, link := range links {
		if place, inside := strings.CutPrefix(link[1], "#"); link[1] != "/openapi.json" && (!inside || !places[place]) {
			t.Errorf("a link leads to %q", link[1])
		}
	}
	if len(links) < 50 || strings.Contains(page, "<script") {
		t.Errorf("got %d links in\n%.2000s\nwant more than 50, and no script", len(links), page)
	}
}
