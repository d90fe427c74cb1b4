package mcp

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/api"
	"fermata/engine/tools"
	"fermata/engine/tools/config"
	"fermata/stubs"
)

// Toolsets tells which tools the programs of a principal may call.
type Toolsets interface {
	// List returns the toolsets of which a principal may use something, each with those tools.
	List(principal string) []tools.Toolset
	// Search returns the tools that match a query best, the best first.
	Search(principal, query, toolset string, limit int) []Found
	// Stub returns the source that programs import for a toolset.
	Stub(ctx context.Context, principal, key string, bash bool) (string, error)
}

// A Found is a tool that a search has found.
type Found struct {
	// Toolset is the key of the tool's toolset, and Class the name of the toolset's class.
	Toolset, Class string
	Tool           tools.Tool
}

const (
	maxQuery    = 1000 // bytes of a query
	maxHits     = 50   // results of a search
	defaultHits = 10   // unless the client asks for another number
	maxSummary  = 200  // bytes of a description in a summary
	maxCatalog  = 800  // bytes of the list of toolsets in the description of run_program
	maxResource = 1000 // toolsets that are resources
)

// listed returns the toolsets of the caller, with the tools that programs may call.
func (f *face) listed() []tools.Toolset {
	if f.o.Toolsets == nil {
		return nil
	}
	list := f.o.Toolsets.List(f.who.ID)
	for i := range list {
		list[i].Tools = slices.DeleteFunc(slices.Clone(list[i].Tools), func(t tools.Tool) bool {
			return t.Rules.Callers != nil && !slices.Contains(t.Rules.Callers, config.CallerCode)
		})
	}
	return list
}

// catalog returns the text about the toolsets in the description of run_program. It has names only, which
// the operator has given. The descriptions of tools come from others, who are not trusted.
func (f *face) catalog() string {
	list := f.listed()
	if len(list) == 0 {
		return "\nThis server has no toolsets for you."
	}
	var b strings.Builder
	b.WriteString("\nToolsets (number of tools): ")
	for i, t := range list {
		entry := fmt.Sprintf("%s (%d)", t.Key, len(t.Tools))
		if b.Len()+len(entry) > maxCatalog {
			fmt.Fprintf(&b, " and %d more", len(list)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(entry)
	}
	b.WriteString(". Use search_tools before you call them.")
	return b.String()
}

// A query has the arguments of search_tools.
type query struct {
	Query   string `json:"query"`
	Toolset string `json:"toolset"`
	Detail  string `json:"detail"`
	Limit   *int   `json:"limit"`
}

// check refuses what the input schema forbids.
func (q *query) check() error {
	q.Detail = cmp.Or(q.Detail, "summary")
	switch {
	case q.Detail != "names" && q.Detail != "summary" && q.Detail != "full":
		return api.BadRequest("detail must be names, summary or full")
	case q.Limit != nil && (*q.Limit < 1 || *q.Limit > maxHits):
		return api.BadRequestf("limit must be from 1 to %d", maxHits)
	case len(q.Query) > maxQuery:
		return api.BadRequestf("query has %d bytes, at most %d are allowed", len(q.Query), maxQuery)
	}
	return nil
}

// A foundTool is a tool that was found.
type foundTool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// A foundToolset is a toolset in a list.
type foundToolset struct {
	Toolset     string `json:"toolset"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	State       string `json:"state"`
	Tools       int    `json:"tools"`
}

// A searchAnswer is the answer of search_tools. Docs are for the detail full.
type searchAnswer struct {
	Toolsets []foundToolset `json:"toolsets,omitempty"`
	Tools    []foundTool    `json:"tools,omitempty"`
	Docs     string         `json:"docs,omitempty"`
	Note     string         `json:"note,omitempty"`
}

// searchTools implements the tool search_tools.
func (f *face) searchTools(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var q query
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	all := f.listed()
	if len(all) == 0 {
		return structured(searchAnswer{Note: "this server has no toolsets for you: programs can compute and work on files"})
	}
	if q.Toolset != "" && !slices.ContainsFunc(all, func(t tools.Toolset) bool { return t.Key == q.Toolset }) {
		return nil, &api.Error{Status: http.StatusNotFound, Text: "There is no such toolset: search without toolset to see those there are"}
	}
	if strings.TrimSpace(q.Query) == "" && q.Toolset == "" {
		return structured(overview(all, q.Detail))
	}
	limit := defaultHits
	if q.Limit != nil {
		limit = *q.Limit
	}
	answer, err := f.tell(f.hits(all, q, limit), q.Detail)
	if err != nil {
		return nil, err
	}
	return structured(answer)
}

// overview returns the list of toolsets.
func overview(all []tools.Toolset, detail string) searchAnswer {
	var a searchAnswer
	for _, t := range all[:min(len(all), maxHits)] {
		told := foundToolset{Toolset: t.Key, State: string(t.State), Tools: len(t.Tools)}
		if detail != "names" {
			told.Title, told.Description = printable(shorten(t.Title, maxSummary)), printable(shorten(t.Description, maxSummary))
		}
		a.Toolsets = append(a.Toolsets, told)
	}
	if n := len(all) - len(a.Toolsets); n > 0 {
		a.Note = fmt.Sprintf("%d more toolsets are left out: search with a query", n)
	}
	return a
}

// hits returns the tools that a query finds. A query without words finds the first tools of its toolset.
func (f *face) hits(all []tools.Toolset, q query, limit int) []Found {
	if strings.TrimSpace(q.Query) != "" {
		return f.o.Toolsets.Search(f.who.ID, q.Query, q.Toolset, limit)
	}
	var found []Found
	for _, t := range all {
		if t.Key != q.Toolset {
			continue
		}
		for _, tool := range t.Tools[:min(len(t.Tools), limit)] {
			found = append(found, Found{t.Key, t.Class, tool})
		}
	}
	return found
}

// tell returns the answer about the tools that were found.
func (f *face) tell(found []Found, detail string) (searchAnswer, error) {
	a := searchAnswer{Tools: []foundTool{}}
	if len(found) == 0 {
		a.Note = "nothing was found: try other words, or list a toolset"
		return a, nil
	}
	var byToolset []tools.Toolset
	for _, hit := range found {
		told := foundTool{Name: toolName(hit.Toolset, hit.Tool.Name)}
		if detail == "summary" {
			told.Description = printable(shorten(hit.Tool.Description, maxSummary))
		}
		a.Tools = append(a.Tools, told)
		i := slices.IndexFunc(byToolset, func(t tools.Toolset) bool { return t.Key == hit.Toolset })
		if i < 0 {
			i, byToolset = len(byToolset), append(byToolset, tools.Toolset{Key: hit.Toolset, Class: hit.Class})
		}
		byToolset[i].Tools = append(byToolset[i].Tools, hit.Tool)
	}
	if detail != "full" {
		return a, nil
	}
	var docs []string
	for _, t := range byToolset {
		text, err := stubs.Docs(f.o.Package, t.ForPrograms())
		if err != nil {
			return a, err
		}
		docs = append(docs, text)
	}
	a.Docs = middle(strings.Join(docs, "\n"), maxStdout)
	return a, nil
}

// The URIs and the type of the resources, which are the sources of toolsets.
const (
	resourcePrefix = "fermata://toolsets/"
	resourceSuffix = ".pyi"
	resourceType   = "text/x-python"
)

// addResources adds the resources of the caller.
func (f *face) addResources(server *sdk.Server) {
	list := f.listed()
	for _, t := range list[:min(len(list), maxResource)] {
		server.AddResource(&sdk.Resource{
			URI: resourcePrefix + t.Key + resourceSuffix, Name: t.Key + resourceSuffix, Title: printable(shorten(t.Title, maxSummary)),
			Description: "What programs import as " + f.o.Package + "." + t.Key, MIMEType: resourceType,
		}, f.readResource)
	}
}

// readResource returns the source of a toolset.
func (f *face) readResource(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	key, ok := strings.CutSuffix(strings.TrimPrefix(r.Params.URI, resourcePrefix), resourceSuffix)
	if !ok || f.o.Toolsets == nil {
		return nil, sdk.ResourceNotFoundError(r.Params.URI)
	}
	source, err := f.o.Toolsets.Stub(ctx, f.who.ID, key, false)
	if err != nil {
		return nil, sdk.ResourceNotFoundError(r.Params.URI)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: resourceType, Text: source}}}, nil
}
