package tools

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"fermata/engine/tools/config"
	"fermata/engine/tools/mcptool"
	"fermata/engine/tools/outgoing"
	"fermata/engine/tools/source"
)

// An mcpSource is an MCP server with the HTTP client for its requests. The client is nil if the server is a
// command.
type mcpSource struct {
	*mcptool.Source
	client *outgoing.Client
}

// Close implements source.Source.
func (s mcpSource) Close(ctx context.Context) error {
	err := s.Source.Close(ctx)
	if s.client != nil {
		s.client.Close()
	}
	return err
}

// observe adds the present state of the MCP server to what is known about a toolset.
func (s mcpSource) observe(known *Toolset) {
	state := s.State()
	if state.State == mcptool.Unavailable && known.State == Ready {
		known.State, known.Reason = Unavailable, state.Reason
	}
	known.Notes = append(known.Notes, state.Changes...)
}

// mcp makes a source of the tools of an MCP server.
func (o opener) mcp(t *toolset, d *config.MCP) (source.Source, error) {
	options := mcptool.Options{
		Toolset: t.described.Key, Version: o.version, Command: d.Command, Env: d.Env, Trusted: t.described.Trusted, Dir: o.commands,
		URL: d.URL, Headers: d.Headers, Shared: t.described.Shared, StartTimeout: d.StartTimeout,
		Only: d.Only, Named: slices.Sorted(maps.Keys(d.Tools)),
		Text: func(tool string) bool { return t.described.Rules(tool).Text },
		Mask: t.masker.Text, Limits: o.gates.limits, Budget: o.gates.budget, Log: o.log,
	}
	s := mcpSource{}
	if d.URL != "" {
		client, err := o.mcpClient(t, d.URL)
		if err != nil {
			return nil, unusable("%v", err)
		}
		s.client = client
		options.Transport = func(principal string) http.RoundTripper { return client.HTTP(principal).Transport }
	}
	made, err := mcptool.New(options)
	if err != nil {
		if s.client != nil {
			s.client.Close()
		}
		return nil, unusable("%v", err)
	}
	s.Source = made
	return s, nil
}

// mcpClient returns a client for the origin of an MCP server. The server may send nothing for as long as a
// call may take, since a tool may take that long.
func (o opener) mcpClient(t *toolset, endpoint string) (*outgoing.Client, error) {
	origin, err := url.Parse(endpoint)
	if err != nil {
		return nil, unusable(textBadURL) // the error has the URL, which may have secrets
	}
	options := outgoing.Options{
		Origin: origin, Private: t.described.Private, Forbidden: o.forbidden, Budget: o.gates.budget, Idle: t.described.Timeout,
	}
	if t.described.Proxy != "" {
		if options.Proxy, err = url.Parse(t.described.Proxy); err != nil {
			return nil, unusable(textBadURL)
		}
	}
	return outgoing.New(options)
}
