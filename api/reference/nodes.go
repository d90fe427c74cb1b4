package reference

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"maragu.dev/gomponents"
	"maragu.dev/gomponents/html"
)

// referencePage returns the page of a document.
func referencePage(d document) ([]byte, error) {
	groups := d.groups()
	return render(d.Info.Title+": the reference", navigation(d, groups), html.Main(
		html.H1(gomponents.Text(d.Info.Title)),
		html.P(gomponents.Text(d.Info.Summary)),
		prose(d.Info.Description),
		html.P(gomponents.Text("Members with a star must be there.")),
		gomponents.Map(groups, func(g group) gomponents.Node {
			return html.Section(
				html.H2(gomponents.Text(g.Name)),
				prose(g.Description),
				gomponents.Map(g.Operations, section),
			)
		}),
		html.Section(
			html.H2(html.ID("keys"), gomponents.Text("Keys")),
			html.P(gomponents.Text("All routes but those of the server need one of these.")),
			html.Table(gomponents.Map(d.Components.Security, func(s entry[scheme]) gomponents.Node {
				return row(html.Code(gomponents.Text(s.Name)), prose(s.Value.Description))
			})),
		),
		html.Section(
			html.H2(html.ID("errors"), gomponents.Text("Errors of many routes")),
			gomponents.Map(d.Components.Responses, func(r entry[response]) gomponents.Node {
				return gomponents.Group{component(r.Name), prose(r.Value.Description)}
			}),
		),
		html.Section(
			html.H2(html.ID("schemas"), gomponents.Text("Schemas")),
			gomponents.Map(d.Components.Schemas, func(s entry[schema]) gomponents.Node {
				return gomponents.Group{component(s.Name), prose(s.Value.Description), described(s.Value)}
			}),
		),
	))
}

// navigation returns the links at the side of the page.
func navigation(d document, groups []group) gomponents.Node {
	return html.Nav(
		html.P(html.Strong(gomponents.Text(d.Info.Title)), html.Br(), link(documentPath, "openapi.json")),
		gomponents.Map(groups, func(g group) gomponents.Node {
			return gomponents.Group{
				html.H2(gomponents.Text(g.Name)),
				html.Ul(gomponents.Map(g.Operations, func(o shownOperation) gomponents.Node {
					return html.Li(html.A(html.Href("#"+o.anchor()), method(o), gomponents.Text(o.Path)))
				})),
			}
		}),
		html.H2(gomponents.Text("More")),
		html.Ul(
			html.Li(link("#keys", "Keys")),
			html.Li(link("#errors", "Errors of many routes")),
			html.Li(link("#schemas", "Schemas")),
		),
	)
}

// section returns the section of an operation.
func section(o shownOperation) gomponents.Node {
	return html.Section(
		html.H3(html.ID(o.anchor()), method(o), html.Code(gomponents.Text(o.Path))),
		html.P(html.Strong(gomponents.Text(o.Summary+"."))),
		prose(o.Description),
		gomponents.If(len(o.Parameters) > 0, gomponents.Group{
			html.H4(gomponents.Text("Parameters and headers")),
			html.Table(gomponents.Map(o.Parameters, func(p parameter) gomponents.Node {
				return row(
					gomponents.Group{name(p.Name, p.Required), gomponents.Text(" "), html.Span(html.Class("soft"), gomponents.Text(p.In))},
					html.Span(html.Class("soft"), typeOf(p.Schema), limitsOf(p.Schema)), prose(p.Description),
				)
			})),
		}),
		gomponents.Iff(o.Body != nil, func() gomponents.Node {
			return gomponents.Group{html.H4(gomponents.Text("Body")), prose(o.Body.Description), contents(o.Body.Content)}
		}),
		html.H4(gomponents.Text("Answers")),
		html.Table(gomponents.Map(o.Responses, func(r entry[response]) gomponents.Node {
			if r.Value.Ref != "" {
				return row(html.Code(gomponents.Text(r.Name)), reference(r.Value.Ref))
			}
			return row(html.Code(gomponents.Text(r.Name)), prose(r.Value.Description), contents(r.Value.Content))
		})),
	)
}

// anchor returns the name that links use for the operation.
func (o shownOperation) anchor() string { return "operation-" + o.ID }

func method(o shownOperation) gomponents.Node {
	return gomponents.Group{html.Span(html.Class("method"), gomponents.Text(o.Method)), gomponents.Text(" ")}
}

// contents returns what a body or an answer may be.
func contents(all list[content]) gomponents.Node {
	return gomponents.Map(all, func(c entry[content]) gomponents.Node {
		soft := gomponents.Group{html.Class("soft"), html.Code(gomponents.Text(c.Name))}
		var members gomponents.Node
		if s := c.Value.Schema; s != nil {
			soft = append(soft, gomponents.Text(": "), typeOf(*s))
			members = membersOf(s)
		}
		return gomponents.Group{html.P(soft), members, gomponents.Map(c.Value.Examples, func(e entry[example]) gomponents.Node {
			return gomponents.Group{
				gomponents.If(e.Value.Summary != "", html.P(html.Class("soft"), gomponents.Text(e.Value.Summary))),
				html.Pre(shown(e.Value.Value)),
			}
		})}
	})
}

// described returns the members of a schema, or its type if it has none.
func described(s schema) gomponents.Node {
	if len(s.Properties) > 0 {
		return membersOf(&s)
	}
	return html.P(html.Class("soft"), typeOf(s), limitsOf(s))
}

// membersOf returns the table of the members of a schema, or nothing if it has none.
func membersOf(s *schema) gomponents.Node {
	if s == nil || len(s.Properties) == 0 {
		return nil
	}
	return html.Table(gomponents.Map(s.Properties, func(p entry[schema]) gomponents.Node {
		return row(
			name(p.Name, slices.Contains(s.Required, p.Name)),
			html.Span(html.Class("soft"), typeOf(p.Value), limitsOf(p.Value)),
			prose(p.Value.Description), membersOf(&p.Value), membersOf(p.Value.Items),
		)
	}))
}

// typeOf returns the type of a schema in words.
func typeOf(s schema) gomponents.Node {
	value := func(v any) gomponents.Node { return html.Code(gomponents.Text(plain(v))) }
	switch {
	case s.Ref != "":
		return reference(s.Ref)
	case s.Const != nil:
		return value(s.Const)
	case len(s.Enum) > 0:
		return joined(s.Enum, ", ", value)
	case len(s.AnyOf) > 0:
		return joined(s.AnyOf, " or ", typeOf)
	case len(s.OneOf) > 0:
		return joined(s.OneOf, " or ", typeOf)
	case s.Items != nil:
		return gomponents.Group{gomponents.Text("array of "), typeOf(*s.Items)}
	case len(s.Type) > 0:
		return joined(s.Type, " or ", gomponents.Text)
	}
	return gomponents.Text("any value")
}

func limitsOf(s schema) gomponents.Node {
	return gomponents.Map(limits(s), func(l string) gomponents.Node { return gomponents.Text(", " + l) })
}

// joined returns what node makes of each item, with a text between them.
func joined[T any](items []T, between string, node func(T) gomponents.Node) gomponents.Node {
	var all gomponents.Group
	for i, item := range items {
		if i > 0 {
			all = append(all, gomponents.Text(between))
		}
		all = append(all, node(item))
	}
	return all
}

// row returns the row of a table with a header and one cell.
func row(header gomponents.Node, cell ...gomponents.Node) gomponents.Node {
	return html.Tr(html.Th(header), html.Td(cell...))
}

// name returns the name of a member or a parameter.
func name(name string, needed bool) gomponents.Node {
	return html.Code(gomponents.If(needed, html.Class("needed")), gomponents.Text(name))
}

func component(name string) gomponents.Node {
	return html.H3(html.ID(anchor(name)), gomponents.Text(name))
}

// reference returns a link to the component to which a $ref leads.
func reference(ref string) gomponents.Node { return link("#"+anchor(refName(ref)), refName(ref)) }

func link(to, text string) gomponents.Node { return html.A(html.Href(to), gomponents.Text(text)) }

// prose returns Markdown as HTML. Tags within it are dropped: goldmark escapes all but its own.
func prose(markdown string) gomponents.Node {
	return gomponents.NodeFunc(func(w io.Writer) error { return goldmark.Convert([]byte(markdown), w) })
}

// shown returns an example as JSON.
func shown(v any) gomponents.Node {
	return gomponents.NodeFunc(func(w io.Writer) error {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(v); err != nil {
			return err
		}
		return gomponents.Text(strings.TrimSpace(b.String())).Render(w)
	})
}
