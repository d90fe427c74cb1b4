package main

import (
	"log/slog"
	"net/http"
	"syscall"

	"fermata/api"
)

const (
	// sandboxFiles is how many descriptors the server has open for a sandbox: its sockets,
	// and what a request reads and writes for it meanwhile.
	sandboxFiles = 3
	// otherFiles is how many it has open for all else: stores, other servers, logs.
	otherFiles = 128
	// leastConnections are left even where there is no room.
	leastConnections = 16
	// metricsConnections is how many there may be to the address of metrics.
	metricsConnections = 64
)

// connections bounds the connections to as many as are set and there are descriptors for.
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

// room is how many connections there are descriptors for beside those of sandboxes.
func (s *settings) room(files uint64) int {
	return max(leastConnections, int(min(files, 1<<30))-otherFiles-sandboxFiles*s.MaxSandboxes)
}

// httpServer returns a server of handler whose connections count.
func httpServer(handler http.Handler, bound *api.Connections, log *slog.Logger) *http.Server {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		// Handlers set deadlines of their own. This one is for the requests that net/http
		// refuses itself and whose body it reads.
		ReadTimeout:    readHeaderTimeout + api.BodyTimeout,
		WriteTimeout:   writeTimeout,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	bound.Bound(server)
	return server
}
