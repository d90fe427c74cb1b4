package main

import (
	"log/slog"
	"net/http"
	"syscall"

	"fermata/api"
)

const (
	// sandboxFiles is how many descriptors the server has open for each sandbox: its sockets,
	// and a file that a request copies into or out of it.
	sandboxFiles = 3
	// otherFiles is how many it has open for everything else: stores, other servers, logs.
	otherFiles = 128
	// leastConnections are allowed even if there are no descriptors for them.
	leastConnections = 16
	// metricsConnections bounds the connections to the metrics listener.
	metricsConnections = 64
)

// connections returns the bound on connections: the setting, or as many as there are
// descriptors for.
func (s *settings) connections(log *slog.Logger, pushedOut func()) *api.Connections {
	limit := s.MaxConnections
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		log.Warn("cannot read the limit on open files", "err", err)
		return api.NewConnections(limit, pushedOut)
	}
	if room := s.room(files.Cur); limit > room {
		log.Warn("the limit on open files (RLIMIT_NOFILE) leaves room for fewer connections than FERMATA_MAX_CONNECTIONS",
			"files", files.Cur, "max_sandboxes", s.MaxSandboxes, "max_connections", limit, "used", room)
		limit = room
	}
	return api.NewConnections(limit, pushedOut)
}

// room is how many connections there are descriptors for after those of the sandboxes.
func (s *settings) room(files uint64) int {
	return max(leastConnections, int(min(files, 1<<30))-otherFiles-sandboxFiles*s.MaxSandboxes)
}

// httpServer returns a server for handler whose connections count towards bound.
func httpServer(handler http.Handler, bound *api.Connections, log *slog.Logger) *http.Server {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		// Handlers set deadlines of their own. This one is for requests that net/http refuses
		// by itself after reading their bodies.
		ReadTimeout:    readHeaderTimeout + api.BodyTimeout,
		WriteTimeout:   writeTimeout,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	bound.Bound(server)
	return server
}
