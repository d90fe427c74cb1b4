package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
)

// errStarting means that the server has not started yet.
var errStarting = errors.New("api: the server is starting")

// A Doorway is the handler of a server from the moment when it listens. Until it is opened it answers
// health checks, and lets all other requests wait.
type Doorway struct {
	checks *Router
	// opened is closed when the Doorway is open; before that inside is not set.
	opened chan struct{}
	inside http.Handler
}

// NewDoorway returns a Doorway that is not open. checks is a router without routes, which answers
// health checks meanwhile.
func NewDoorway(checks *Router, version string) *Doorway {
	checks.Health(version, func(context.Context) error { return errStarting })
	return &Doorway{checks: checks, opened: make(chan struct{})}
}

// Open lets all requests in: h answers them, and those that have waited. It may be called once.
func (d *Doorway) Open(h http.Handler) {
	d.inside = h
	close(d.opened)
}

// ServeHTTP implements http.Handler.
func (d *Doorway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-d.opened:
		d.inside.ServeHTTP(w, r)
		return
	default:
	}
	if slices.Contains(healthPaths, tidied(r.URL.Path)) {
		d.checks.ServeHTTP(w, r)
		return
	}
	select {
	case <-d.opened:
		d.inside.ServeHTTP(w, r)
	case <-r.Context().Done():
	}
}
