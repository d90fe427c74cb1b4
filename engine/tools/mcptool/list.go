package mcptool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/engine/tools/schema"
	"fermata/engine/tools/source"
)

// A listed tool is a tool as a server lists it.
type listed struct {
	tool   source.Tool
	digest [sha256.Size]byte
	flaw   string // why the tool cannot be offered, or empty
}

// A page is a page of the list of tools.
type page struct {
	Tools []json.RawMessage `json:"tools"`
	Next  string            `json:"nextCursor"`
}

// definition has the members of a tool that define it. A tool has changed if one of them has.
type definition struct {
	Name        string          `json:"name"`
	Title       json.RawMessage `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"inputSchema"`
	Output      json.RawMessage `json:"outputSchema,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

// list asks a server for its tools. It returns nil without an error if the server has said before that
// the list does not change within this time.
func list(ctx context.Context, s *session) ([]listed, error) {
	var all []listed
	size, cursors, names := 0, map[string]bool{}, map[string]int{}
	for cursor, pages := "", 1; ; pages++ {
		if pages > MaxPages {
			return nil, errManyPages
		}
		ctx, x := withExchange(ctx, s.hold())
		defer x.end() // The pages together are at most MaxList.
		_, err := s.mcp.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		answer := x.answer.Load()
		switch {
		case answer == nil && err == nil:
			return nil, nil //nolint:nilnil // as the comment of list says
		case answer == nil:
			if status := x.status.Load(); status != 0 {
				err = errors.Join(statusReason(status), err)
			}
			return nil, err
		case answer.Error != nil:
			return nil, errors.Join(refusedList(answer.Error), answer.Error)
		}
		if size += len(answer.Result); size > MaxList {
			return nil, errLargeList
		}
		var p page
		if err := json.Unmarshal(answer.Result, &p); err != nil {
			return nil, errors.Join(errBrokenList, err)
		}
		if len(all)+len(p.Tools) > MaxTools {
			return nil, errManyTools
		}
		for _, raw := range p.Tools {
			t := read(raw)
			if first, twice := names[t.tool.Name]; twice {
				all[first].flaw = "its MCP server lists it twice" // Nobody knows which of them a call would reach.
				continue
			}
			names[t.tool.Name] = len(all)
			all = append(all, t)
		}
		if p.Next == "" {
			break
		}
		if cursors[p.Next] {
			return nil, errSamePage
		}
		cursors[p.Next], cursor = true, p.Next
	}
	slices.SortFunc(all, func(a, b listed) int { return strings.Compare(a.tool.Name, b.tool.Name) })
	return slices.Clip(append([]listed{}, all...)), nil
}

// read reads the definition of a tool. A tool that cannot be offered has a flaw, and takes no other tool away. The
// properties of its schemas keep their order, which is that of the tool's parameters. For the digest they are
// sorted, so a server that lists equal definitions in another order has changed nothing.
func read(raw json.RawMessage) listed {
	ordered, err := schema.Strict(raw) // It refuses objects with two members of the same name.
	if err != nil {
		return listed{tool: source.Tool{Name: nameOf(raw)}, flaw: "its definition cannot be used: " + err.Error()}
	}
	var d definition
	if err := json.Unmarshal(ordered, &d); err != nil {
		return listed{tool: source.Tool{Name: nameOf(raw)}, flaw: "its definition is not as the protocol says"}
	}
	t := listed{tool: source.Tool{Name: d.Name, Description: short(d.Description), Input: d.Input, Output: d.Output}}
	switch {
	case d.Name == "" || len(d.Name) > maxName || !utf8.ValidString(d.Name):
		t.flaw = fmt.Sprintf("its name is empty, or has more than %d bytes", maxName)
	case !bytes.HasPrefix(d.Input, []byte("{")):
		t.flaw = "its input schema is no object"
	case len(d.Input) > MaxSchema:
		t.flaw = fmt.Sprintf("its input schema has more than %d bytes", MaxSchema)
	default:
		t.digest, err = d.digest()
		if err != nil {
			t.flaw = "its definition cannot be used: " + err.Error()
		}
	}
	if !bytes.HasPrefix(d.Output, []byte("{")) || len(d.Output) > MaxSchema {
		t.tool.Output = nil // The schema of the result is only a help for readers.
	}
	// The annotations of a tool are never trusted: only the operator says that it is idempotent.
	return t
}

// digest returns the digest of a definition, for which the order of members does not matter.
func (d definition) digest() ([sha256.Size]byte, error) {
	whole, err := json.Marshal(d)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	canonical, err := schema.Canonical(whole)
	return sha256.Sum256(canonical), err
}

// nameOf returns the name in a definition that is otherwise broken, or an empty text.
func nameOf(raw json.RawMessage) string {
	var named struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(raw, &named) != nil || len(named.Name) > maxName {
		return ""
	}
	return named.Name
}

// short truncates a description.
func short(s string) string {
	if len(s) <= MaxDescription {
		return s
	}
	cut := MaxDescription - len(" …")
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + " …"
}

// quote returns a name that a server has chosen, in a form that is safe in logs and reasons.
func quote(name string) string {
	if len(name) > 64 {
		name = name[:64]
	}
	return fmt.Sprintf("%+q", name)
}
