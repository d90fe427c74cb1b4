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

// digest returns a digest of the definition that does not depend on the order of members.
func (d definition) digest() ([sha256.Size]byte, error) {
	whole, err := json.Marshal(d)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	sorted, err := schema.Canonical(whole)
	return sha256.Sum256(sorted), err
}

// list asks a server for its tools. It returns nil without an error if the server has said before that
// the list does not change within this time.
func list(ctx context.Context, s *mcp.ClientSession) ([]listed, error) {
	var all []listed
	size, cursors, names := 0, map[string]bool{}, map[string]bool{}
	for cursor, pages := "", 1; ; pages++ {
		if pages > MaxPages {
			return nil, errManyPages
		}
		ctx, x := withExchange(ctx)
		_, err := s.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
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
			t, err := read(raw)
			if err != nil {
				return nil, errors.Join(errBrokenList, err)
			}
			if names[t.tool.Name] {
				return nil, reason("it offers two tools with the name " + quote(t.tool.Name))
			}
			names[t.tool.Name] = true
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

// read reads the definition of a tool.
func read(raw json.RawMessage) (listed, error) {
	strict, err := schema.Strict(raw) // It refuses objects with two members of the same name.
	if err != nil {
		return listed{}, err
	}
	var d definition
	if err := json.Unmarshal(strict, &d); err != nil {
		return listed{}, err
	}
	if d.Name == "" || len(d.Name) > 256 || !utf8.ValidString(d.Name) {
		return listed{}, errors.New("a tool has no name, or one of more than 256 bytes")
	}
	digest, err := d.digest()
	if err != nil {
		return listed{}, err
	}
	if string(d.Output) == "null" {
		d.Output = nil
	}
	// The annotations of a tool are never trusted: only the operator says that it is idempotent.
	t := listed{
		tool:   source.Tool{Name: d.Name, Description: short(d.Description), Input: d.Input, Output: d.Output},
		digest: digest,
	}
	switch {
	case !bytes.HasPrefix(d.Input, []byte("{")):
		t.flaw = "its input schema is no object"
	case len(d.Output) > 0 && !bytes.HasPrefix(d.Output, []byte("{")):
		t.flaw = "its output schema is no object"
	case len(d.Input) > MaxSchema || len(d.Output) > MaxSchema:
		t.flaw = fmt.Sprintf("it has a schema of more than %d bytes", MaxSchema)
	}
	return t, nil
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
