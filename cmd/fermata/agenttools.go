package main

import (
	"fermata/api/mcp"
	"fermata/engine/tools/host"
)

// agentTools are the toolsets of a server as agents search them.
type agentTools struct{ *host.Host }

// Search returns the tools that fit a query best, the best first.
func (a agentTools) Search(principal, query, toolset string, limit int) []mcp.Found {
	var found []mcp.Found
	for _, f := range a.Host.Search(principal, query, toolset, limit) {
		found = append(found, mcp.Found{Toolset: f.Toolset, Class: f.Class, Tool: f.Tool})
	}
	return found
}
