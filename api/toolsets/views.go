package toolsets

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/engine/tools"
	"fermata/engine/tools/config"
)

// A page is the answer with a list. Next is set for lists that have pages.
type page struct {
	Data any `json:"data"`
	Next any `json:"next"`
}

// A shownToolset is the entry of a toolset in the list.
type shownToolset struct {
	Key         string      `json:"key"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	State       tools.State `json:"state"`
	Reason      string      `json:"reason,omitempty"`
	Tools       []shownTool `json:"tools"`
}

// A shownTool is the entry of a tool in the list.
type shownTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Cost        int64  `json:"cost"`
	Approval    string `json:"approval"`
	Source      string `json:"source"`
}

const (
	// defaultToolsets is the size of a page of toolsets: as many as a server may have. maxToolsets is the
	// largest one.
	defaultToolsets = 100
	maxToolsets     = 200
)

// list answers with the toolsets that the client may use, in the order of their keys. The cursor of a page
// is the key of the last toolset of the page before, so that it stays valid when the toolsets file is read
// again.
func (h *handlers) list(c echo.Context) error {
	q := queryOf(c)
	limit, after := q.Limit(defaultToolsets, maxToolsets), q.key("after")
	if q.Err != nil {
		return q.Err
	}
	all := h.toolsets.List(api.PrincipalOf(c).ID)
	all = slices.DeleteFunc(all, func(t tools.Toolset) bool { return t.Key <= after })
	slices.SortFunc(all, func(a, b tools.Toolset) int { return strings.Compare(a.Key, b.Key) })
	var next any
	if len(all) > limit {
		all = all[:limit]
		next = all[limit-1].Key
	}
	shown := []shownToolset{}
	for _, t := range all {
		s := shownToolset{Key: t.Key, Title: t.Title, Description: t.Description, State: t.State, Reason: t.Reason, Tools: []shownTool{}}
		for _, tool := range t.Tools {
			approval := cmp.Or(tool.Rules.Approval, config.ApprovalNever)
			s.Tools = append(s.Tools, shownTool{tool.Name, tool.Description, tool.Rules.Cost, approval, t.Source})
		}
		shown = append(shown, s)
	}
	return api.Answer(c, http.StatusOK, page{shown, next})
}

// An exportedToolset has the definitions of a toolset's tools.
type exportedToolset struct {
	Key   string `json:"key"`
	Title string `json:"title"`
	Class string `json:"class"`
	// State tells a toolset without tools from one whose tools are not known, and Reason why that is so.
	State  tools.State    `json:"state"`
	Reason string         `json:"reason,omitempty"`
	Tools  []exportedTool `json:"tools"`
}

// An exportedTool is the definition of a tool. Its output schema is left out if it is not known.
type exportedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input_schema"`
	Output      json.RawMessage `json:"output_schema,omitempty"`
}

// export answers with definitions. The toolsets have two names, on both paths, so that nobody who takes the
// other one gets all toolsets.
func (h *handlers) export(c echo.Context) error {
	q := queryOf(c)
	names, others := q.names("keys"), q.names("toolsetKeys")
	if names != nil && others != nil {
		q.Refuse("keys", "not be given together with toolsetKeys, which means the same")
	}
	if q.Err != nil {
		return q.Err
	}
	found, err := h.toolsets.Find(c.Request().Context(), api.PrincipalOf(c).ID, append(names, others...))
	if err != nil {
		return err
	}
	exported := []exportedToolset{}
	for _, t := range found {
		e := exportedToolset{Key: t.Key, Title: t.Title, Class: t.Class, State: t.State, Reason: t.Reason, Tools: []exportedTool{}}
		for _, tool := range t.Tools {
			e.Tools = append(e.Tools, exportedTool{tool.Name, tool.Description, tool.Input, tool.Output})
		}
		exported = append(exported, e)
	}
	return api.Answer(c, http.StatusOK, page{Data: exported})
}

// The languages of stubs.
const (
	python = "python"
	bash   = "bash"
)

// stub answers with the source that programs import.
func (h *handlers) stub(c echo.Context) error {
	q := queryOf(c)
	lang := q.Choice("lang", python, bash)
	if q.Err != nil {
		return q.Err
	}
	source, err := h.toolsets.Stub(c.Request().Context(), api.PrincipalOf(c).ID, c.Param("key"), lang == bash)
	if err != nil {
		return missing(err)
	}
	return answerText(c, echo.MIMETextPlain, source)
}

// markdown is the media type of texts for models.
const markdown = "text/markdown"

// docs answers with the documentation of a toolset.
func (h *handlers) docs(c echo.Context) error {
	text, err := h.toolsets.Docs(c.Request().Context(), api.PrincipalOf(c).ID, c.Param("key"))
	if err != nil {
		return missing(err)
	}
	return answerText(c, markdown, text)
}

// prompt answers with a section of a system prompt.
func (h *handlers) prompt(c echo.Context) error {
	q := queryOf(c)
	names, sequential := q.names("keys"), q.Choice("sequential", "true", "false") == "true"
	if q.Err != nil {
		return q.Err
	}
	text, err := h.toolsets.Prompt(c.Request().Context(), api.PrincipalOf(c).ID, names, sequential)
	if err != nil {
		return err
	}
	return answerText(c, markdown, strings.TrimSuffix(text, "\n")+"\n")
}
