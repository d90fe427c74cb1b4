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
	"fermata/engine/files"
	"fermata/engine/journal"
	"fermata/engine/sandbox"
	"fermata/engine/tools/host"
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

// parts are the parts of a server, in the order in which they are opened.
type parts struct {
	*settings
	log          *slog.Logger
	watched      *metrics
	dir, stateID string
	keys         keys
	store        continuation.Store
	registry     peer.Directory
	files        *files.Store
	provider     sandbox.Provider
	maxIdle      time.Duration
	toolsets     *host.Host
	used         *usage.Counter
	executions   *engine.Engine
}

// keys sign what a server gives away, and check what comes back.
type keys struct {
	signer   *continuation.Signer
	peers    peer.Key
	sessions mcp.Key
	verifier *auth.JWT
}

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
	p := parts{settings: s, log: log, watched: watched}
	var release func() error
	if p.dir, err = s.Executions.stateDir(log); err != nil {
		return handlers, opened, err
	}
	if p.stateID, release, err = lockStateDir(p.dir); err != nil {
		return handlers, opened, err
	}
	opened.add("state directory", func(context.Context) error { return release() })
	commands := filepath.Join(p.dir, "mcp")
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
	if p.keys, err = p.makeKeys(); err != nil {
		return handlers, opened, err
	}
	if p.store, p.registry, err = s.Servers.store(p.dir, &s.Journal, log); err != nil { //nolint:contextcheck // the store lives until it is closed
		return handlers, opened, err
	}
	opened.add("store", func(context.Context) error { return p.store.Close() })
	found(p.store.Ping)
	if p.files, err = s.Files.open(ctx, log, p.dir); err != nil {
		return handlers, opened, err
	}
	opened.add("files", func(context.Context) error { return p.files.Close() })
	instance := p.stateID + "." + uuid.NewString()
	if p.provider, p.maxIdle, err = s.provider(ctx, log, p.dir, p.installation(), instance); err != nil {
		return handlers, opened, err
	}
	opened.add("sandboxes", func(context.Context) error { return p.provider.Close() })
	forbidden := slices.Concat([]net.Addr{addr}, listeners, s.Servers.redisAddresses(ctx))
	var closing func(context.Context) error
	if p.toolsets, closing, err = s.Tools.open(ctx, log, commands, s.isPrincipal, forbidden...); err != nil {
		return handlers, opened, err
	}
	if p.toolsets != nil {
		opened.add("toolsets", closing)
	}
	p.used = usage.New(usage.Options{Store: p.store, Life: s.Tools.UsageLife, Log: log}) //nolint:contextcheck // it writes until it is closed
	opened.add("usage", p.used.Close)
	if p.executions, err = p.engine(ctx, instance, addr); err != nil {
		return handlers, opened, err
	}
	opened.add("engine", p.executions.Close)
	watched.watch(p.executions.Stats)
	if handlers, err = p.faces(ctx, serving); err != nil {
		return handlers, opened, err
	}
	opened.add("programs of agents", handlers.agents.Close)
	handlers.about = s.about(ctx, p.dir, p.provider)
	return handlers, opened, nil
}

// makeKeys makes the keys of a server from its secrets, which may be in its state directory.
func (p *parts) makeKeys() (k keys, err error) {
	secrets, err := p.Executions.secrets(p.dir)
	if err != nil {
		return k, err
	}
	if k.signer, err = continuation.NewSigner(secrets); err != nil {
		return k, fmt.Errorf("%w (FERMATA_SECRET): make one with openssl rand -hex 32", err)
	}
	if k.peers, err = peer.NewKey(secrets); err != nil {
		return k, err
	}
	if k.sessions, err = mcp.NewKey(secrets); err != nil {
		return k, err
	}
	k.verifier, err = p.JWT.verifier(p.log)
	return k, err
}

// installation returns what the sandboxes of a server belong to. Every server of a group may take over a container of
// another one.
func (p *parts) installation() string {
	if p.registry == nil {
		return p.stateID
	}
	return p.keys.peers.Group(p.Servers.redisPlace())
}

// engine starts the engine. addr is where clients reach the server.
func (p *parts) engine(ctx context.Context, instance string, addr net.Addr) (*engine.Engine, error) {
	address, err := p.Servers.peerAddress(addr)
	if err != nil {
		return nil, err
	}
	options := engine.Options{
		Provider: p.provider,
		Store:    p.store,
		Signer:   p.keys.signer,
		Instance: instance,
		// Process sandboxes live below this server's state directory, so no other server can
		// reach them. Containers can be reached by every server that uses the same Docker
		// daemon.
		Exclusive:    p.Sandbox.Provider == "process",
		Address:      address,
		Peers:        peer.NewClient(p.keys.peers, maxPeerAnswer+2*maxEscape*int64(p.Sandbox.Output)),
		KeepPaused:   p.Servers.Drain == "keep",
		Log:          p.log,
		PauseTTL:     p.Executions.PauseTTL,
		ApprovalTTL:  p.Executions.ApprovalTTL,
		KeepAnswers:  p.Executions.Keep,
		WallClock:    p.Executions.TimeoutClock == "wall",
		MaxRounds:    p.Executions.MaxRounds,
		MaxCalls:     p.Executions.MaxCalls,
		MaxResults:   int64(p.Executions.MaxResults),
		PoolSizes:    p.Sandbox.poolSizes(),
		MaxIdle:      p.maxIdle,
		MaxSandboxes: p.Sandbox.MaxSandboxes,
		MaxRunning:   p.Executions.MaxRunning,
		MaxPaused:    p.Executions.MaxPaused,
		QueueTimeout: p.Sandbox.QueueTimeout,
		Waited:       seconds(p.watched.waits),
		Made:         seconds(p.watched.made),

		Files:        p.files,
		MaxInputSize: p.Sandbox.inputSize(),
		Journal:      p.Journal.options(),
		Words:        librechat.Words{},

		Package:         p.Tools.Package,
		ToolConcurrency: p.Tools.Concurrency,
		Used:            p.used.Used,

		MaxExecutions: p.maxExecutions(),
		MaxStored:     int64(p.Executions.MaxStored),
		Limits:        p.limits(),
	}
	// An interface with a nil pointer in it is not nil.
	if p.registry != nil {
		options.Registry = peer.NewRegistry(p.registry, p.keys.peers, p.Files.bucket(), p.log)
	}
	if p.toolsets != nil {
		options.Toolsets = p.toolsets
	}
	executions, err := engine.New(ctx, options)
	if errors.Is(err, sandbox.ErrOutOfMemory) {
		err = fmt.Errorf("%w (FERMATA_MEMORY, which is %s, is too small for the interpreter and its libraries)", err, humanize.IBytes(uint64(p.Sandbox.Memory)))
	}
	if err != nil {
		return nil, fmt.Errorf("start engine: %w", err)
	}
	return executions, nil
}

// faces registers the routes of a server. Its streams end with serving.
//
//nolint:contextcheck // each request has a context of its own, and Ready waits for nothing
func (p *parts) faces(ctx, serving context.Context) (handlers served, err error) {
	options := p.options(p.log, p.watched)
	options.Auth = auth.New(p.HTTP.keys(), p.keys.verifier)
	clients := api.New(options)
	clients.Health(version(), draining(ctx), p.executions.Ready, func(context.Context) error { return p.files.Ready() })
	history := journal.NewHistory(p.store, p.executions.EndForgotten)
	readers := api.NewReaders(p.HTTP.MaxReaders, p.watched.readers())
	blocks := timelines.New(history, p.files, p.Journal.Timeline)
	contract := p.librechat()
	contract.History, contract.Readers, contract.Timelines = history, readers, blocks
	routes := toolsetroutes.Options{Calls: p.executions, Body: int64(p.HTTP.MaxBody)}
	agents := mcp.Options{
		Executions: p.executions, Files: p.files, History: history, Package: p.Tools.Package,
		Readers: readers, Key: p.keys.sessions, Version: version(), Log: p.log,
	}
	if p.toolsets != nil {
		contract.Keys, routes.Toolsets, agents.Toolsets = p.toolsets.Keys, p.toolsets, agentTools{p.toolsets}
	}
	handlers.agents = mcp.New(agents)
	librechat.Register(clients, contract)
	live.Register(clients, live.Options{History: history, Executions: p.executions, Readers: readers, Draining: serving, Log: p.log})
	blocks.Register(clients, p.log)
	toolsetroutes.Register(clients, routes)
	toolsetroutes.RegisterUsage(clients, p.used)
	mcp.Register(clients, handlers.agents)
	if p.HTTP.Console == "on" {
		if err := console.Register(clients); err != nil {
			return handlers, errors.Join(err, handlers.agents.Close(ctx))
		}
	}
	reference.Register(clients, reference.Options{Version: version(), Console: p.HTTP.Console == "on"})
	servers := clients
	if p.Servers.PeerAddr != "" {
		servers = api.New(options)
		handlers.peers = servers
	}
	if p.registry != nil || p.Servers.PeerAddr != "" {
		peer.Register(servers, p.executions, p.keys.peers, peer.Limits{Body: int64(p.HTTP.MaxBody), Results: p.Executions.MaxCalls})
	}
	handlers.handler = clients
	return handlers, nil
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
func (p *parts) librechat() librechat.Options {
	o := librechat.Options{
		Executions:  p.executions,
		Files:       p.files,
		Errors:      p.HTTP.ErrorStyle,
		NoTimelines: p.Journal.Mode != journal.Full,
		Limits: librechat.Limits{
			Body:        int64(p.HTTP.MaxBody),
			Tools:       p.Executions.MaxTools,
			Results:     p.Executions.MaxCalls,
			ResultBytes: int(p.Executions.MaxResult),
		},
	}
	if p.Files.bucket() {
		o.UploadMemory = bucketPart
	}
	return o
}
