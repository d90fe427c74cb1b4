package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/google/uuid"

	"fermata/api"
	"fermata/api/auth"
	"fermata/api/console"
	"fermata/api/librechat"
	"fermata/api/live"
	"fermata/api/mcp"
	"fermata/api/peer"
	"fermata/api/reference"
	"fermata/api/timelines"
	toolsetroutes "fermata/api/toolsets"
	"fermata/continuation"
	"fermata/engine"
	"fermata/engine/journal"
	"fermata/engine/sandbox"
	"fermata/engine/usage"
)

const (
	// maxPeerAnswer bounds the answer of another server, not counting the output of the
	// program, of which each byte becomes at most maxEscape bytes of JSON.
	maxPeerAnswer = 64 << 20
	maxEscape     = 6
	// bucketPart is the memory that an upload to a bucket needs from its first byte on.
	bucketPart = 5 << 20
)

// closers close the parts of a server that were opened, the last one first.
type closers []closer

type closer struct {
	what string
	f    func(context.Context) error
}

func (c *closers) add(what string, f func(context.Context) error) { *c = append(*c, closer{what, f}) }

// partGrace is how long each remaining part may take to close when the time for all of
// them is over.
const partGrace = time.Second

// close closes the parts within closeTimeout, also if ctx has ended. It does not wait forever for a part
// that does not close: the end of the process ends that part too.
func (c closers) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	var errs []error
	for _, part := range slices.Backward(c) {
		closed := make(chan error, 1)
		go func() { closed <- part.f(ctx) }()
		errs = append(errs, part.await(ctx, closed))
	}
	return errors.Join(errs...)
}

func (c closer) await(ctx context.Context, closed <-chan error) error {
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-closed:
		return err
	case <-time.After(partGrace):
		return fmt.Errorf("close %s: gave up, since it takes too long", c.what)
	}
}

// A served is what a server serves.
type served struct {
	// handler is for clients. peers is for other servers, or nil if those use the same
	// address as clients.
	handler, peers http.Handler
	// agents is for clients that speak the Model Context Protocol.
	agents *mcp.Server
	// about is what the log tells of the server when it serves.
	about []slog.Attr
}

// pinging asks a store whether it answers.
type pinging = func(context.Context) error

// wire opens the parts of a server and connects them. The caller must close opened when no
// request is being handled any more. After an error nothing is left open. From the end of ctx on
// the server says that it is not ready; streams end with serving. watched shows what the parts do.
//
// found is called when there is a store, which may not answer yet.
func (s *settings) wire(ctx, serving context.Context, log *slog.Logger, watched *metrics, found func(store pinging), addr net.Addr, listeners ...net.Addr) (handlers served, opened closers, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.close(ctx))
			opened = nil
		}
	}()
	dir, err := s.Executions.stateDir(log)
	if err != nil {
		return handlers, opened, err
	}
	stateID, release, err := lockStateDir(dir)
	if err != nil {
		return handlers, opened, err
	}
	opened.add("state directory", func(context.Context) error { return release() })
	commands := filepath.Join(dir, "mcp")
	clearCommands(commands, log)
	if s.HTTP.MetricsAddr != "" {
		// Metrics are opened before the other parts and closed after them, to show how those
		// start and stop.
		at, stop, err := watched.serve(ctx, s.HTTP.MetricsAddr, log)
		if err != nil {
			return handlers, opened, err
		}
		listeners = append(listeners, at)
		opened.add("metrics", stop)
	}
	instance := stateID + "." + uuid.NewString()
	secrets, err := s.Executions.secrets(dir)
	if err != nil {
		return handlers, opened, err
	}
	signer, err := continuation.NewSigner(secrets)
	if err != nil {
		return handlers, opened, fmt.Errorf("%w (FERMATA_SECRET): make one with openssl rand -hex 32", err)
	}
	peerKey, err := peer.NewKey(secrets)
	if err != nil {
		return handlers, opened, err
	}
	sessions, err := mcp.NewKey(secrets)
	if err != nil {
		return handlers, opened, err
	}
	verifier, err := s.JWT.verifier(log)
	if err != nil {
		return handlers, opened, err
	}
	store, registry, err := s.Servers.store(dir, &s.Journal, log) //nolint:contextcheck // the store lives until it is closed
	if err != nil {
		return handlers, opened, err
	}
	opened.add("store", func(context.Context) error { return store.Close() })
	found(store.Ping)
	files, err := s.Files.open(ctx, log, dir)
	if err != nil {
		return handlers, opened, err
	}
	opened.add("files", func(context.Context) error { return files.Close() })
	installation := stateID
	if registry != nil {
		// Every server of the group may take over a container of another one.
		installation = peerKey.Group(s.Servers.redisPlace())
	}
	provider, maxIdle, err := s.provider(ctx, log, dir, installation, instance)
	if err != nil {
		return handlers, opened, err
	}
	opened.add("sandboxes", func(context.Context) error { return provider.Close() })
	handlers.about = s.about(ctx, dir, provider)
	var signed continuation.Registry
	if registry != nil {
		signed = peer.NewRegistry(registry, peerKey, s.Files.bucket(), log)
	}
	address, err := s.Servers.peerAddress(addr)
	if err != nil {
		return handlers, opened, err
	}
	toolsets, closeToolsets, err := s.Tools.open(ctx, log, commands, s.isPrincipal, slices.Concat([]net.Addr{addr}, listeners, s.Servers.redisAddresses(ctx))...)
	if err != nil {
		return handlers, opened, err
	}
	var granting engine.Toolsets
	if toolsets != nil {
		granting = toolsets
		opened.add("toolsets", closeToolsets)
	}
	used := usage.New(usage.Options{Store: store, Life: s.Tools.UsageLife, Log: log}) //nolint:contextcheck // it writes until it is closed
	opened.add("usage", used.Close)
	executions, err := engine.New(ctx, engine.Options{
		Provider: provider,
		Store:    store,
		Signer:   signer,
		Instance: instance,
		// Process sandboxes live below this server's state directory, so no other server can
		// reach them. Containers can be reached by every server that uses the same Docker
		// daemon.
		Exclusive:    s.Sandbox.Provider == "process",
		Registry:     signed,
		Address:      address,
		Peers:        peer.NewClient(peerKey, maxPeerAnswer+2*maxEscape*int64(s.Sandbox.Output)),
		KeepPaused:   s.Servers.Drain == "keep",
		Log:          log,
		PauseTTL:     s.Executions.PauseTTL,
		ApprovalTTL:  s.Executions.ApprovalTTL,
		KeepAnswers:  s.Executions.Keep,
		WallClock:    s.Executions.TimeoutClock == "wall",
		MaxRounds:    s.Executions.MaxRounds,
		MaxCalls:     s.Executions.MaxCalls,
		MaxResults:   int64(s.Executions.MaxResults),
		PoolSizes:    s.Sandbox.poolSizes(),
		MaxIdle:      maxIdle,
		MaxSandboxes: s.Sandbox.MaxSandboxes,
		MaxRunning:   s.Executions.MaxRunning,
		MaxPaused:    s.Executions.MaxPaused,
		QueueTimeout: s.Sandbox.QueueTimeout,
		Waited:       seconds(watched.waits),
		Made:         seconds(watched.made),

		Files:        files,
		MaxInputSize: s.Sandbox.inputSize(),
		Journal:      s.Journal.options(),
		Words:        librechat.Words{},

		Toolsets:        granting,
		Package:         s.Tools.Package,
		ToolConcurrency: s.Tools.Concurrency,
		Used:            used.Used,

		MaxExecutions: s.maxExecutions(),
		MaxStored:     int64(s.Executions.MaxStored),
		Limits:        s.limits(),
	})
	if errors.Is(err, sandbox.ErrOutOfMemory) {
		err = fmt.Errorf("%w (FERMATA_MEMORY, which is %s, is too small for the interpreter and its libraries)", err, humanize.IBytes(uint64(s.Sandbox.Memory)))
	}
	if err != nil {
		return handlers, opened, fmt.Errorf("start engine: %w", err)
	}
	opened.add("engine", executions.Close)
	watched.watch(executions.Stats)
	options := s.options(log, watched)
	options.Auth = auth.New(s.HTTP.keys(), verifier)
	clients := api.New(options)
	clients.Health(version(), draining(ctx), executions.Ready, func(context.Context) error { return files.Ready() }) //nolint:contextcheck // Ready waits for nothing
	history := journal.NewHistory(store, executions.EndForgotten)
	readers := api.NewReaders(s.HTTP.MaxReaders, watched.readers())
	contract := s.librechat(executions, files)
	blocks := timelines.New(history, files, s.Journal.Timeline)
	contract.History, contract.Readers, contract.Timelines = history, readers, blocks
	if toolsets != nil {
		contract.Keys = toolsets.Keys
	}
	librechat.Register(clients, contract)                                                                                         //nolint:contextcheck // each request has a context of its own
	live.Register(clients, live.Options{History: history, Executions: executions, Readers: readers, Draining: serving, Log: log}) //nolint:contextcheck // each request has a context of its own
	blocks.Register(clients, log)                                                                                                 //nolint:contextcheck // each request has a context of its own
	routes := toolsetroutes.Options{Calls: executions, Body: int64(s.HTTP.MaxBody)}
	if toolsets != nil {
		routes.Toolsets = toolsets
	}
	toolsetroutes.Register(clients, routes)    //nolint:contextcheck // each request has a context of its own
	toolsetroutes.RegisterUsage(clients, used) //nolint:contextcheck // each request has a context of its own
	agents := mcp.Options{
		Executions: executions, Files: files, History: history, Package: s.Tools.Package,
		Readers: readers, Key: sessions, Version: version(), Log: log,
	}
	if toolsets != nil {
		agents.Toolsets = agentTools{toolsets}
	}
	handlers.agents = mcp.New(agents)
	opened.add("programs of agents", handlers.agents.Close)
	mcp.Register(clients, handlers.agents) //nolint:contextcheck // each request has a context of its own
	if s.HTTP.Console == "on" {
		if err := console.Register(clients); err != nil {
			return handlers, opened, err
		}
	}
	reference.Register(clients, reference.Options{Version: version(), Console: s.HTTP.Console == "on"})
	servers := clients
	if s.Servers.PeerAddr != "" {
		servers = api.New(options)
		handlers.peers = servers
	}
	if registry != nil || s.Servers.PeerAddr != "" {
		peer.Register(servers, executions, peerKey, peer.Limits{Body: int64(s.HTTP.MaxBody), Results: s.Executions.MaxCalls})
	}
	handlers.handler = clients
	return handlers, opened, nil
}

// options returns the settings that all contracts share, except for who may use them.
func (s *settings) options(log *slog.Logger, watched *metrics) api.Options {
	o := s.HTTP.options(log)
	// Other servers call this one by this name.
	if u, err := url.Parse(s.Servers.PeerURL); err == nil && u.Hostname() != "" {
		o.Hosts = append(o.Hosts, u.Hostname())
	}
	o.Observe = watched.request
	return o
}

// draining returns a check of readiness that fails as soon as signalled has ended.
func draining(signalled context.Context) func(context.Context) error {
	return func(context.Context) error {
		if signalled.Err() != nil {
			return engine.ErrClosing
		}
		return nil
	}
}

// librechat returns the settings of LibreChat's contract.
func (s *settings) librechat(executions librechat.Executions, files librechat.Files) librechat.Options {
	o := librechat.Options{
		Executions:  executions,
		Files:       files,
		Errors:      s.HTTP.ErrorStyle,
		NoTimelines: s.Journal.Mode != journal.Full,
		Limits: librechat.Limits{
			Body:        int64(s.HTTP.MaxBody),
			Tools:       s.Executions.MaxTools,
			Results:     s.Executions.MaxCalls,
			ResultBytes: int(s.Executions.MaxResult),
		},
	}
	if s.Files.bucket() {
		o.UploadMemory = bucketPart
	}
	return o
}
