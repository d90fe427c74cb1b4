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
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"fermata/api"
	"fermata/api/auth"
	"fermata/api/librechat"
	"fermata/api/live"
	"fermata/api/peer"
	"fermata/continuation"
	"fermata/continuation/boltstore"
	"fermata/continuation/redisstore"
	"fermata/engine"
	"fermata/engine/journal"
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

// close does not wait forever for a part that does not close: the end of the process ends
// that part too.
func (c closers) close(ctx context.Context) error {
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
	bound          *api.Connections
}

// wire opens the parts of a server and connects them. The caller must close opened when no
// request is being handled any more. After an error nothing is left open.
func (s *settings) wire(ctx context.Context, log *slog.Logger, addr net.Addr) (handlers served, opened closers, err error) {
	defer func() {
		if err != nil {
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
			defer cancel()
			err = errors.Join(err, opened.close(closing))
			opened = nil
		}
	}()
	dir, err := s.stateDir(log)
	if err != nil {
		return handlers, opened, err
	}
	stateID, release, err := lockStateDir(dir)
	if err != nil {
		return handlers, opened, err
	}
	opened.add("state directory", func(context.Context) error { return release() })
	watched := newMetrics()
	if s.MetricsAddr != "" {
		// Metrics are opened before the other parts and closed after them, to show how those
		// start and stop.
		stop, err := watched.serve(ctx, s.MetricsAddr, log)
		if err != nil {
			return handlers, opened, err
		}
		opened.add("metrics", stop)
	}
	instance := stateID + "." + uuid.NewString()
	secrets, err := s.secrets(dir)
	if err != nil {
		return handlers, opened, err
	}
	signer, err := continuation.NewSigner(secrets)
	if err != nil {
		return handlers, opened, err
	}
	peerKey, err := peer.NewKey(secrets)
	if err != nil {
		return handlers, opened, err
	}
	verifier, err := s.JWT.verifier(log)
	if err != nil {
		return handlers, opened, err
	}
	store, registry, err := s.store(dir, log) //nolint:contextcheck // the store lives until it is closed
	if err != nil {
		return handlers, opened, err
	}
	opened.add("store", func(context.Context) error { return store.Close() })
	files, err := s.files(ctx, log, dir)
	if err != nil {
		return handlers, opened, err
	}
	opened.add("files", func(context.Context) error { return files.Close() })
	installation := stateID
	if registry != nil {
		// Every server of the group may take over a container of another one.
		installation = peerKey.Group(s.redisPlace())
	}
	provider, maxIdle, err := s.provider(ctx, log, dir, installation, instance)
	if err != nil {
		return handlers, opened, err
	}
	opened.add("sandboxes", func(context.Context) error { return provider.Close() })
	var signed continuation.Registry
	if registry != nil {
		signed = peer.NewRegistry(registry, peerKey, log)
	}
	address, err := s.peerAddress(addr)
	if err != nil {
		return handlers, opened, err
	}
	executions, err := engine.New(ctx, engine.Options{
		Provider: provider,
		Store:    store,
		Signer:   signer,
		Instance: instance,
		// Process sandboxes live below this server's state directory, so no other server can
		// reach them. Containers can be reached by every server that uses the same Docker
		// daemon.
		Exclusive:    s.Sandbox == "process",
		Registry:     signed,
		Address:      address,
		Peers:        peer.NewClient(peerKey, maxPeerAnswer+2*maxEscape*int64(s.Output)),
		KeepPaused:   s.Drain == "keep",
		Log:          log,
		PauseTTL:     s.PauseTTL,
		KeepAnswers:  s.Keep,
		WallClock:    s.TimeoutClock == "wall",
		MaxRounds:    librechat.MaxRounds,
		MaxCalls:     s.MaxCalls,
		MaxResults:   int64(s.MaxResults),
		PoolSizes:    s.poolSizes(),
		MaxIdle:      maxIdle,
		MaxSandboxes: s.MaxSandboxes,
		MaxRunning:   s.MaxRunning,
		MaxPaused:    s.MaxPaused,
		QueueTimeout: s.QueueTimeout,
		Waited:       seconds(watched.waits),
		Made:         seconds(watched.made),

		Files:        files,
		MaxInputSize: s.inputSize(),
		Journal:      journal.Options{Mode: journal.Full, Value: journal.DefaultValue, Life: journal.DefaultLife},
		Words:        librechat.Words{},

		MaxExecutions: s.maxExecutions(),
		MaxStored:     int64(s.MaxStored),
		Limits:        s.limits(),
	})
	if err != nil {
		return handlers, opened, fmt.Errorf("start engine: %w", err)
	}
	opened.add("engine", executions.Close)
	watched.watch(executions.Stats)
	handlers.bound = s.connections(log, watched.pushedOut.Inc)
	options := s.api(log)
	options.Auth, options.Observe = auth.New(s.keys(), verifier), watched.request
	clients := api.New(options)
	clients.Health(version(), executions.Ready, func(context.Context) error { return files.Ready() }) //nolint:contextcheck // Ready waits for nothing
	history := journal.NewHistory(store, executions.EndForgotten)
	readers := api.NewReaders(s.MaxReaders, watched.readers())
	contract := s.librechat(executions, files)
	contract.History, contract.Readers = history, readers
	librechat.Register(clients, contract)
	live.Register(clients, live.Options{History: history, Executions: executions, Readers: readers, Draining: ctx, Log: log})
	servers := clients
	if s.PeerAddr != "" {
		servers = api.New(options)
		handlers.peers = servers
	}
	if registry != nil || s.PeerAddr != "" {
		peer.Register(servers, executions, peerKey, peer.Limits{Body: int64(s.MaxBody), Results: s.MaxCalls})
	}
	handlers.handler = clients
	return handlers, opened, nil
}

// store opens the store of records. It also returns the registry of servers, or nil if no
// other servers can share the store.
func (s *settings) store(dir string, log *slog.Logger) (continuation.Store, continuation.Registry, error) {
	if s.RedisURL.reveal() == "" {
		store, err := boltstore.Open(filepath.Join(dir, "executions.db"), log)
		return store, nil, err
	}
	var options []redisstore.Option
	if len(s.RedisSecret) > 0 {
		options = append(options, redisstore.WithKey(reveal(s.RedisSecret)...))
	}
	store, err := redisstore.New(s.RedisURL.reveal(), options...)
	if err != nil {
		return nil, nil, err
	}
	return store, store, nil
}

// redisPlace returns the part of the Redis URL that says where Redis is, without the
// credentials. Servers whose URLs differ in it belong to different groups.
func (s *settings) redisPlace() string {
	u, err := url.Parse(s.RedisURL.reveal())
	if err != nil {
		return "" // This cannot happen: the store has refused such a URL.
	}
	query := u.Query()
	for _, secret := range []string{"username", "password"} {
		query.Del(secret)
	}
	return u.Host + u.Path + "?" + query.Encode()
}

// peerAddress returns the URL at which other servers reach this one.
func (s *settings) peerAddress(addr net.Addr) (string, error) {
	if s.PeerURL != "" {
		return strings.TrimRight(s.PeerURL, "/"), nil
	}
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return "http://" + addr.String(), nil
	}
	// This server listens on every address. Other servers need one that belongs to this host.
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("find an address of this host for other servers (set FERMATA_PEER_URL to name one): %w", err)
	}
	for _, a := range addresses {
		if network, ok := a.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			return "http://" + net.JoinHostPort(network.IP.String(), strconv.Itoa(tcp.Port)), nil
		}
	}
	return "http://" + addr.String(), nil
}

// secrets returns the secrets that sign continuation tokens. If the settings have none, it
// uses the one in the state directory, which is made once and kept, because tokens have to
// outlive the server.
func (s *settings) secrets(dir string) ([][]byte, error) {
	if len(s.Secret) > 0 {
		return reveal(s.Secret), nil
	}
	made, err := continuation.LoadOrCreateSecret(filepath.Join(dir, "secret"))
	if err != nil {
		return nil, err
	}
	return [][]byte{made}, nil
}

func reveal(secrets []secret) [][]byte {
	revealed := make([][]byte, len(secrets))
	for i, s := range secrets {
		revealed[i] = []byte(s.reveal())
	}
	return revealed
}

// hosts returns the names by which clients may call the server.
func (s *settings) hosts() []string {
	hosts := s.Hosts
	if host, _, err := net.SplitHostPort(s.Addr); err == nil && host != "" {
		hosts = append(slices.Clone(hosts), host)
	}
	return hosts
}

func (s *settings) keys() []auth.Key {
	keys := make([]auth.Key, len(s.APIKeys))
	for i, k := range s.APIKeys {
		keys[i] = auth.Key{Name: k.Name, Key: k.Key.reveal()}
	}
	return keys
}

// api returns the settings that all contracts share, except for those that need other parts
// of the server.
func (s *settings) api(log *slog.Logger) api.Options {
	return api.Options{
		Open:         s.Auth == "off",
		Hosts:        s.hosts(),
		RefusalDelay: api.RefusalDelay,
		BodyBudget:   int64(s.BodyBudget),
		Rates: api.Rates{
			Executions: api.Rate(s.RateExecutions),
			Uploads:    api.Rate(s.RateUploads),
			Downloads:  api.Rate(s.RateDownloads),
			Lists:      api.Rate(s.RateLists),
		},
		Log: log,
	}
}

// librechat returns the settings of LibreChat's contract.
func (s *settings) librechat(executions librechat.Executions, files librechat.Files) librechat.Options {
	o := librechat.Options{
		Executions: executions,
		Files:      files,
		Errors:     s.ErrorStyle,
		Limits: librechat.Limits{
			Body:        int64(s.MaxBody),
			Tools:       s.MaxTools,
			Results:     s.MaxCalls,
			ResultBytes: int(s.MaxResult),
		},
	}
	if strings.HasPrefix(s.FilesURL, "s3://") {
		o.UploadMemory = bucketPart
	}
	return o
}
