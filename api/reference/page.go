package reference

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"unicode"

	"maragu.dev/gomponents"
	"maragu.dev/gomponents/components"
	"maragu.dev/gomponents/html"
)

//go:embed style.css
var style string

// policy returns the Content-Security-Policy of both pages: nothing but their style sheet.
func policy() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// render returns a page with this title.
func render(title string, body ...gomponents.Node) ([]byte, error) {
	var b bytes.Buffer
	page := components.HTML5(components.HTML5Props{
		Title: title, Language: "en",
		Head: []gomponents.Node{html.StyleEl(gomponents.Raw(style))},
		Body: body,
	})
	if err := page.Render(&b); err != nil {
		return nil, fmt.Errorf("reference: make the page %q: %w", title, err)
	}
	return b.Bytes(), nil
}

// welcomePage returns the page that greets browsers.
func welcomePage(hello greeting) ([]byte, error) {
	return render("Fermata",
		html.Class("welcome"),
		html.H1(gomponents.Text("Fermata")),
		html.P(
			gomponents.Text("This server runs Python and bash programs that call your tools. Its version is "),
			html.Code(gomponents.Text(hello.Version)), gomponents.Text("."),
		),
		html.Ul(
			html.Li(link(hello.Docs, "The reference of its HTTP API")),
			html.Li(link(hello.OpenAPI, "The same as an OpenAPI document")),
			gomponents.If(hello.Console != "", html.Li(link(hello.Console, "The console"), gomponents.Text(", which shows executions"))),
		),
	)
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

// groups returns the operations by their tags, in the order of the tags.
func (d document) groups() []group {
	var all []group
	for _, tag := range d.Tags {
		g := group{Name: tag.Name, Description: tag.Description}
		for _, path := range d.Paths {
			for _, o := range []struct {
				method    string
				operation *operation
			}{{"GET", path.Value.Get}, {"POST", path.Value.Post}, {"DELETE", path.Value.Delete}} {
				if o.operation != nil && slices.Contains(o.operation.Tags, tag.Name) {
					parameters := d.resolved(slices.Concat(path.Value.Parameters, o.operation.Parameters))
					g.Operations = append(g.Operations, shownOperation{o.method, path.Name, *o.operation, parameters})
				}
			}
		}
		all = append(all, g)
	}
	return all
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
