package tools

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"

	"fermata/engine/tools/config"
	"fermata/engine/tools/httptool"
	"fermata/engine/tools/mask"
	"fermata/engine/tools/openapi"
	"fermata/engine/tools/source"
)

// An opener opens toolsets. It has what they share.
type opener struct {
	gates     *Gates
	forbidden []netip.AddrPort
	log       *slog.Logger
	version   string
	commands  string
}

// open opens a toolset. It opens no connection, so the tools of MCP servers are not known afterwards.
func (o opener) open(ctx context.Context, described config.Toolset) *toolset {
	t := &toolset{
		described: described, masker: mask.New(described.Secrets), gates: o.gates, gate: o.gates.toolset(described.Key, described.Concurrency),
		log: o.log, starting: make(chan struct{}, 1), state: Starting,
	}
	made, err := o.source(t)
	if err != nil {
		t.fail(err)
		return t
	}
	t.source = made
	if described.MCP == nil {
		// These sources list their tools without a connection.
		if offered, err := made.Tools(ctx); err != nil {
			t.fail(err)
		} else {
			t.take(offered)
		}
	}
	return t
}

// source makes the source of a toolset.
func (o opener) source(t *toolset) (source.Source, error) {
	switch d := &t.described; {
	case d.HTTP != nil:
		operations, err := operationsOf(d.HTTP)
		if err != nil {
			return nil, err
		}
		return o.http(t, httptool.Options{BaseURL: d.HTTP.BaseURL, Headers: d.HTTP.Headers, Retries: d.HTTP.Retries, Operations: operations})
	case d.OpenAPI != nil:
		return o.openAPI(t, d.OpenAPI)
	default:
		return o.mcp(t, d.MCP)
	}
}

// http makes a source of HTTP requests.
func (o opener) http(t *toolset, options httptool.Options) (source.Source, error) {
	options.Timeout, options.Private, options.Proxy = t.described.Timeout, t.described.Private, t.described.Proxy
	options.Budget, options.Forbidden, options.Mask = o.gates.budget, o.forbidden, t.masker.Text
	made, err := httptool.New(options)
	if err != nil {
		return nil, unusable("%v", err)
	}
	return made, nil
}

// openAPI makes a source of the operations of an OpenAPI document.
func (o opener) openAPI(t *toolset, d *config.OpenAPI) (source.Source, error) {
	document, err := config.Once(d.Document, func(text []byte) (*openapi.Document, error) {
		return openapi.Read(text, openapi.Choice{Operations: d.Only, Tags: d.Tags})
	})
	if err != nil {
		return nil, unusable("%v", err)
	}
	for _, note := range document.Notes {
		noteOf(t, note)
	}
	base := cmp.Or(d.BaseURL, document.BaseURL)
	if base == "" && document.Path != "" {
		return nil, unusable(textNoHost, quoted(document.Path))
	}
	if base == "" {
		return nil, unusable(textNoServer)
	}
	return o.http(t, httptool.Options{BaseURL: base, Headers: d.Headers, Retries: d.Retries, Operations: document.Operations})
}

// operationsOf returns the operations of the tools that the file describes.
func operationsOf(h *config.HTTP) ([]httptool.Operation, error) {
	operations := make([]httptool.Operation, 0, len(h.Tools))
	for _, tool := range h.Tools {
		parameters, rest, err := httptool.Place(tool.Method, tool.Path, tool.Parameters)
		if err != nil {
			return nil, unusable("its tool %s: the path %v", tool.Name, err)
		}
		operation := httptool.Operation{
			Name: tool.Name, Description: tool.Description, Method: tool.Method, Path: tool.Path,
			Parameters: parameters, Rest: rest, Input: tool.Parameters, Result: tool.Result,
		}
		if tool.Envelope {
			operation.Result = "" // The pointer is applied to the content of the envelope instead.
		}
		operations = append(operations, operation)
	}
	return operations, nil
}

// pointerOf returns the JSON Pointer of a tool's result within the member ret of an envelope.
func pointerOf(t *toolset, tool string) string {
	if t.described.HTTP == nil {
		return ""
	}
	for _, h := range t.described.HTTP.Tools {
		if h.Name == tool {
			return h.Result
		}
	}
	return ""
}
