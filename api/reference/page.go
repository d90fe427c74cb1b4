package reference

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
)

//go:embed page
var pageFiles embed.FS

// pages make the pages.
type pages struct {
	templates *template.Template
	style     template.CSS
	// policy is the Content-Security-Policy of both pages: nothing but their style sheet.
	policy string
}

func newPages() (*pages, error) {
	style, err := pageFiles.ReadFile("page/style.css")
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	functions := template.FuncMap{"prose": prose, "asJSON": shown, "plain": plain, "refName": refName, "anchor": anchor, "limits": limits, "needed": needed}
	templates, err := template.New("").Funcs(functions).ParseFS(pageFiles, "page/*.html")
	if err != nil {
		return nil, fmt.Errorf("reference: read the templates: %w", err)
	}
	sum := sha256.Sum256(style)
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return &pages{templates, template.CSS(style), policy}, nil //nolint:gosec // it is a file of ours
}

// A view is what the template of the reference gets.
type view struct {
	Style    template.CSS
	Document document
	Groups   []group
	JSON     string
}

// A group is the operations with one tag.
type group struct {
	Name, Description string
	Operations        []shownOperation
}

// A shownOperation is an operation with its address.
type shownOperation struct {
	Method, Path string
	operation
	Parameters []parameter
}

// reference returns the page of a document.
func (p *pages) reference(d document) ([]byte, error) {
	v := view{Style: p.style, Document: d, JSON: documentPath}
	for _, tag := range d.Tags {
		g := group{Name: tag.Name, Description: tag.Description}
		for _, path := range d.Paths {
			for _, o := range []struct {
				method    string
				operation *operation
			}{{"GET", path.Value.Get}, {"POST", path.Value.Post}, {"DELETE", path.Value.Delete}} {
				if o.operation != nil && slices.Contains(o.operation.Tags, tag.Name) {
					all := d.resolved(slices.Concat(path.Value.Parameters, o.operation.Parameters))
					g.Operations = append(g.Operations, shownOperation{o.method, path.Name, *o.operation, all})
				}
			}
		}
		v.Groups = append(v.Groups, g)
	}
	return p.render("reference.html", v)
}

// welcome returns the page that greets browsers.
func (p *pages) welcome(g greeting) ([]byte, error) {
	return p.render("welcome.html", struct {
		Style template.CSS
		greeting
	}{p.style, g})
}

func (p *pages) render(name string, data any) ([]byte, error) {
	var b bytes.Buffer
	if err := p.templates.ExecuteTemplate(&b, name, data); err != nil {
		return nil, fmt.Errorf("reference: make the page %s: %w", name, err)
	}
	return b.Bytes(), nil
}

// resolved returns parameters with those in the place of references to which these lead.
func (d document) resolved(parameters []parameter) []parameter {
	for i, p := range parameters {
		for _, known := range d.Components.Parameters {
			if p.Ref != "" && known.Name == refName(p.Ref) {
				parameters[i] = known.Value
			}
		}
	}
	return parameters
}

// prose returns Markdown as HTML. Tags within it are dropped.
func prose(markdown string) (template.HTML, error) {
	var b bytes.Buffer
	err := goldmark.Convert([]byte(markdown), &b)
	return template.HTML(b.String()), err //nolint:gosec // goldmark escapes all but its own tags
}

// shown returns an example as JSON.
func shown(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return strings.TrimSpace(b.String()), err
}

// plain returns a value on one line.
func plain(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// anchor returns the name that links use for a component: its own, with a small first letter.
func anchor(name string) string {
	letters := []rune(name)
	if len(letters) > 0 {
		letters[0] = unicode.ToLower(letters[0])
	}
	return string(letters)
}

// needed reports whether a member of a schema must be there.
func needed(s schema, name string) bool { return slices.Contains(s.Required, name) }

// limits returns what a schema says about its values beside their type.
func limits(s schema) []string {
	var all []string
	add := func(format string, v any) {
		if v != nil {
			all = append(all, fmt.Sprintf(format, v))
		}
	}
	add("format %v", orNil(s.Format))
	add("at least %v", s.Minimum)
	add("at most %v", s.Maximum)
	add("at least %v characters", s.MinLength)
	add("at most %v characters", s.MaxLength)
	add("at least %v entries", s.MinItems)
	add("at most %v entries", s.MaxItems)
	add("at most %v members", s.MaxMembers)
	add("pattern %v", orNil(s.Pattern))
	if s.Default != nil {
		all = append(all, "default "+plain(s.Default))
	}
	return all
}

func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}
