package main

import (
	"context"
	"log/slog"
	"net/url"
	"strings"

	"fermata/engine/process"
	"fermata/engine/sandbox"
)

// about returns what the log tells of a server when it serves: what runs its programs, where it keeps
// what, and who may use it. It has no credentials. dir is the state directory.
func (s *settings) about(ctx context.Context, dir string, p sandbox.Provider) []slog.Attr {
	attrs := []slog.Attr{slog.String("version", version()), slog.String("sandbox", s.Sandbox.Provider)}
	if processes, ok := p.(*process.Provider); ok {
		attrs = append(attrs, aboutPython(ctx, processes)...)
	} else {
		attrs = append(attrs, slog.String("image", s.Sandbox.DockerImage))
		if s.Sandbox.DockerRuntime != "" {
			attrs = append(attrs, slog.String("runtime", s.Sandbox.DockerRuntime))
		}
	}
	sizes := s.Sandbox.poolSizes()
	store := "embedded"
	if s.Servers.RedisURL.reveal() != "" {
		store = place(s.Servers.RedisURL.reveal())
	}
	if s.Tools.Path != "" {
		attrs = append(attrs, slog.String("toolsets_file", s.Tools.Path))
	}
	return append(attrs,
		slog.Int("pool_plain", sizes[sandbox.Plain]),
		slog.Int("pool_scientific", sizes[sandbox.Scientific]),
		slog.Int("max_sandboxes", s.Sandbox.MaxSandboxes),
		slog.String("store", store),
		slog.String("state_dir", dir),
		slog.String("files", place(s.Files.url(dir))),
		slog.String("auth", s.admits()))
}

// aboutPython tells of the interpreter of process sandboxes. A program without a library fails at its
// import, so the log tells what is missing.
func aboutPython(ctx context.Context, p *process.Provider) []slog.Attr {
	path, version := p.Python()
	attrs := []slog.Attr{slog.String("python", path), slog.String("python_version", version)}
	found, missing, err := p.Libraries(ctx)
	if err != nil {
		return append(attrs, slog.Any("err", err))
	}
	attrs = append(attrs, slog.String("libraries", strings.Join(found, " ")))
	if len(missing) > 0 {
		attrs = append(attrs, slog.String("missing", strings.Join(missing, " ")))
	}
	return attrs
}

// admits returns who may use the server.
func (s *settings) admits() string {
	switch {
	case s.HTTP.Auth == "off":
		return "off"
	case !s.JWT.on():
		return "keys"
	case len(s.HTTP.APIKeys) == 0:
		return "tokens"
	default:
		return "keys and tokens"
	}
}

// place returns where a URL leads, without the credentials that it may have in its parts.
func place(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "" // This cannot happen: what has this address is open.
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
