package host

import (
	"context"
	"slices"
	"strconv"

	"fermata/engine/tools"
	"fermata/engine/tools/config"
	"fermata/engine/tools/policy"
)

// Call makes a call. Its error is a *source.CallError. If the definition of the tool has not changed since
// the start, the call is made by the present toolset. Otherwise it is made by the toolset of the start, with
// the present address and secrets.
func (g *Grant) Call(ctx context.Context, r tools.Request) (tools.Result, error) {
	r.Principal = g.principal
	now, release := g.host.now()
	defer release()
	if now != g.generation && now.same(ctx, g.generation, policy.Name{Toolset: r.Toolset, Tool: r.Tool}) {
		return now.tools.Call(ctx, r)
	}
	if now != g.generation {
		if connected := g.host.connected(ctx, g.generation, now, r.Toolset); connected != nil {
			return connected.Call(ctx, r)
		}
	}
	return g.generation.tools.Call(ctx, r)
}

// connected returns a toolset of a former generation with the present address and secrets, or nil if there is
// none. The former generation closes it.
func (h *generations) connected(ctx context.Context, former, now *generation, key string) *tools.Tools {
	before, described := former.file.Toolset(key), now.file.Toolset(key)
	if before == nil || described == nil {
		return nil
	}
	toolset, ok := before.ConnectedAs(*described)
	if !ok {
		return nil
	}
	former.mu.Lock()
	defer former.mu.Unlock()
	which := connection{now, key}
	if former.connected[which] == nil {
		former.connected[which] = h.opened(ctx, &config.File{Toolsets: []config.Toolset{toolset}})
	}
	return former.connected[which]
}

// same reports whether a tool has the same definition in this generation as in a former one.
func (g *generation) same(ctx context.Context, former *generation, n policy.Name) bool {
	described, before := g.file.Toolset(n.Toolset), former.file.Toolset(n.Toolset)
	if described == nil || before == nil || described.Source() != before.Source() {
		return false
	}
	if described.HTTP != nil && !sameRequest(described.HTTP.Tools, before.HTTP.Tools, n.Tool) {
		return false
	}
	if described.OpenAPI != nil && described.OpenAPI.Document.Digest != before.OpenAPI.Document.Digest {
		return false
	}
	rules, old := described.Rules(n.Tool), before.Rules(n.Tool)
	if rules.Envelope != old.Envelope || rules.Text != old.Text {
		return false
	}
	opened, err := g.tools.Toolset(ctx, n.Toolset) // This waits for a toolset that is being loaded.
	if err != nil {
		return false
	}
	return slices.Equal(definition(opened, n.Tool), definition(former.toolset(n.Toolset), n.Tool))
}

// sameRequest reports whether a tool makes the same request in two files.
func sameRequest(a, b []config.HTTPTool, name string) bool {
	named := func(t config.HTTPTool) bool { return t.Name == name }
	i, j := slices.IndexFunc(a, named), slices.IndexFunc(b, named)
	return i >= 0 && j >= 0 && a[i].Method == b[j].Method && a[i].Path == b[j].Path && a[i].Result == b[j].Result
}

// definition returns the parts of a tool's definition that calls depend on.
func definition(t tools.Toolset, name string) []string {
	for _, tool := range t.Tools {
		if tool.Name == name {
			return []string{string(tool.Input), string(tool.Output), strconv.FormatBool(tool.Idempotent)}
		}
	}
	return nil
}
