package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"fermata/api"
)

// run serves until ctx ends. Then it answers the requests that are under way and closes the
// parts of the server. strays are environment variables to warn of.
func (s *settings) run(ctx context.Context, stderr io.Writer, strays []stray) (err error) {
	log := s.Log.logger(stderr)
	s.warn(log, strays)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.HTTP.Addr)
	if err != nil {
		return fmt.Errorf("listen at FERMATA_ADDR: %w", err)
	}
	defer func() { _ = listener.Close() }() // the HTTP server has closed it, if it came to serving
	peerListener := listener
	if s.Servers.PeerAddr != "" {
		if peerListener, err = new(net.ListenConfig).Listen(ctx, "tcp", s.Servers.PeerAddr); err != nil {
			return fmt.Errorf("listen at FERMATA_PEER_ADDR: %w", err)
		}
		defer func() { _ = peerListener.Close() }()
	}
	watched := newMetrics()
	bound := s.HTTP.connections(log, s.Sandbox.MaxSandboxes, watched.pushedOut.Inc)
	// Health checks are answered while the parts of the server start; other requests wait.
	door := api.NewDoorway(api.New(s.options(log, watched)), version()) //nolint:contextcheck // each request has a context of its own
	server := httpServer(door, bound, log)
	defer func() { _ = server.Close() }() // It has been shut down, if it came to serving.
	served := make(chan error, 2)
	go func() { served <- server.Serve(listener) }()
	// serving ends when the server stops to serve, which is FERMATA_DRAIN_DELAY after ctx.
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	// The parts must outlive ctx, because requests that are under way when it ends need them.
	handlers, opened, err := s.wire(ctx, serving, log, watched, door.Ask, peerListener.Addr(), listener.Addr())
	if err != nil && ctx.Err() != nil {
		log.Info("shutting down before serving", "err", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.close(ctx)) }()
	door.Open(handlers.handler)
	peers := httpServer(handlers.peers, bound, log)
	if handlers.peers != nil {
		go func() { served <- peers.Serve(peerListener) }()
		log.Info("answering other servers", "addr", peerListener.Addr().String())
	}
	log.LogAttrs(ctx, slog.LevelInfo, "serving", append([]slog.Attr{slog.String("addr", listener.Addr().String())}, handlers.about...)...)

	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	if err := s.Servers.linger(log, served); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	log.Info("shutting down")
	stopServing()
	s.Servers.drain(ctx, log, server, peers)
	return nil
}

// warn tells of settings that have no effect, and of those that are dangerous.
func (s *settings) warn(log *slog.Logger, strays []stray) {
	for _, one := range strays {
		log.Warn("a setting is ignored", "reason", one.warning())
	}
	for _, sentence := range s.idle() {
		log.Warn("a setting is ignored", "reason", sentence)
	}
	if s.HTTP.Auth == "off" {
		log.Warn("authentication is off: everyone who can reach the address may run programs")
	}
	for _, k := range slices.Concat(s.HTTP.APIKeys, s.HTTP.OperatorKeys) {
		if k.length() < goodKey {
			log.Warn("a key in FERMATA_API_KEYS or FERMATA_OPERATOR_KEYS is short enough to be guessed: make one with openssl rand -hex 24", "principal", k.Name, "characters", k.length())
		}
	}
}

// drain waits for the requests that are under way, for as long as the setting says.
func (s *serverSettings) drain(ctx context.Context, log *slog.Logger, clients, peers *http.Server) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.DrainTimeout)
	defer cancel()
	// Both are shut down at the same time: requests may be under way in both, from clients and
	// from servers that have handed them over.
	stopped := make(chan error, 1)
	go func() { stopped <- peers.Shutdown(ctx) }()
	if err := errors.Join(clients.Shutdown(ctx), <-stopped); err != nil {
		// Closing the engine ends these programs, and so answers their requests.
		log.Warn("ending the programs that are still running", "err", err)
	}
}

// linger lets the server serve on for the drain delay, in which /ready says that it is draining. It
// returns an error early if serving fails.
func (s *serverSettings) linger(log *slog.Logger, served <-chan error) error {
	if s.DrainDelay == 0 {
		return nil
	}
	log.Info("draining: everything is served as before until FERMATA_DRAIN_DELAY is over", "drain_delay", s.DrainDelay.String())
	select {
	case err := <-served:
		return err
	case <-time.After(s.DrainDelay):
		return nil
	}
}
