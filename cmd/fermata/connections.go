package main

import (
	"log/slog"
	"net/http"
	"syscall"

	"fermata/api"
)

const (
	// sandboxFiles is how many descriptors the server has open for each sandbox: its sockets
	// and the files that its request reads and writes.
	sandboxFiles = 3
	// otherFiles is how many descriptors the server has open for everything else: stores,
	// other servers, logs.
	otherFiles = 128
	// leastConnections is the least limit on connections, even if there are too few
	// descriptors.
	leastConnections = 16
	// metricsConnections is the limit on connections to the address of metrics.
	metricsConnections = 64
)

// connections returns the limit on connections: the one that is set, or less if there are
// not enough descriptors beside those of the sandboxes.
func (s *httpSettings) connections(log *slog.Logger, sandboxes int, pushedOut func()) *api.Connections {
	limit := s.MaxConnections
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		log.Warn("cannot read the limit on open files", "err", err)
		return api.NewConnections(limit, pushedOut)
	}
	if left := room(files.Cur, sandboxes); limit > left {
		log.Warn("the limit on open files (RLIMIT_NOFILE) leaves room for fewer connections than FERMATA_MAX_CONNECTIONS",
			"files", files.Cur, "max_sandboxes", sandboxes, "max_connections", limit, "used", left)
		limit = left
	}
	return api.NewConnections(limit, pushedOut)
}

// room returns for how many connections there are descriptors, given the limit on open
// files. Those of sandboxes are left out.
func room(files uint64, sandboxes int) int {
	return max(leastConnections, int(min(files, 1<<30))-otherFiles-sandboxFiles*sandboxes)
}

// httpServer returns a server of handler that is subject to the limit on connections.
func httpServer(handler http.Handler, bound *api.Connections, log *slog.Logger) *http.Server {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		// Handlers set their own deadline for the body. This one is for requests that net/http
		// refuses itself, since it then reads their body.
		ReadTimeout:    readHeaderTimeout + api.BodyTimeout,
		WriteTimeout:   writeTimeout,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	bound.Bound(server)
	return server
}
