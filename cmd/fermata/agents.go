package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"fermata/api/auth"
	"fermata/api/mcp"
)

// agentCommand is the command fermata mcp: it speaks the Model Context Protocol over stdin and stdout.
// Nothing but messages goes to stdout.
type agentCommand struct {
	URL    string `env:"FERMATA_URL" placeholder:"URL" help:"Pass everything on to the running server at this URL, with the key in FERMATA_API_KEY, or in the file that FERMATA_API_KEY_FILE names. Without it programs run here, with the settings of serve."`
	Server settings
}

// Validate reports mistakes in what is the command's own, and in the settings of serve. Whoever has the
// two streams is let in.
func (c *agentCommand) Validate() error {
	s := &c.Server
	s.HTTP.Auth = "off"
	s.JWT.JWKS, s.JWT.KeysDir, s.JWT.PublicKey, s.JWT.HS256Secret = "", "", "", secret{}
	if c.URL == "" && s.Servers.RedisURL.reveal() != "" {
		return errors.New("fermata mcp runs programs by itself and is not part of a group: unset FERMATA_REDIS_URL, or name a server of the group by --url")
	}
	if c.URL != "" && !isHTTP(c.URL) {
		return errors.New("--url (FERMATA_URL) must be the URL of a running server, such as http://localhost:8000")
	}
	return s.Validate()
}

// isHTTP reports whether a text is the URL of a server, with or without the path of its routes.
func isHTTP(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.RawQuery == "" && u.Fragment == ""
}

// route returns the URL of the route /mcp of a server. People also give that itself.
func route(server string) string {
	return strings.TrimSuffix(strings.TrimSuffix(server, "/"), "/mcp") + "/mcp"
}

// streams are stdin and stdout.
type streams struct {
	in  io.ReadCloser
	out io.WriteCloser
}

// keepOpen is a writer that others must not close.
type keepOpen struct{ io.Writer }

// Close implements io.Closer.
func (keepOpen) Close() error { return nil }

// run speaks until stdin or ctx ends.
func (c *agentCommand) run(ctx context.Context, s streams, stderr io.Writer, strays []stray) error {
	log := c.Server.Log.logger(stderr)
	if c.URL != "" {
		key, err := agentKey()
		if err != nil {
			return err
		}
		return mcp.Relay(ctx, s.in, s.out, mcp.Remote{URL: route(c.URL), Key: key, Log: log})
	}
	for _, one := range strays {
		log.Warn("a setting is ignored", "reason", one.warning())
	}
	return c.Server.serveAgent(ctx, s, log)
}

// agentKey returns the key of the server to which everything is passed on. A key among the arguments
// could be seen by everyone on the machine.
func agentKey() (string, error) {
	path := os.Getenv("FERMATA_API_KEY_FILE")
	if path == "" {
		return os.Getenv("FERMATA_API_KEY"), nil
	}
	text, err := os.ReadFile(path) //nolint:gosec // the user names the file
	if err != nil {
		return "", fmt.Errorf("read the key (FERMATA_API_KEY_FILE): %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// serveAgent runs the programs of one agent.
func (s *settings) serveAgent(ctx context.Context, to streams, log *slog.Logger) (err error) {
	if s.Executions.StateDir == "" {
		// Every agent on the machine has a state of its own.
		dir, err := os.MkdirTemp("", "fermata-agent-")
		if err != nil {
			return fmt.Errorf("make a directory for the state: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		s.Executions.StateDir = filepath.Join(dir, "state")
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	handlers, opened, err := s.wire(ctx, serving, log, newMetrics(), func(pinging) {}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.close(ctx)) }()
	log.LogAttrs(ctx, slog.LevelInfo, "serving an agent", handlers.about...)
	err = handlers.agents.Serve(ctx, auth.Principal{ID: auth.Anonymous}, mcp.Lines(to.in, to.out))
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
