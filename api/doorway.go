package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
)

// errStarting means that the server has not started yet.
var errStarting = errors.New("api: the server is starting")

// A Doorway is the handler of a server from the moment when it listens. Until it is opened it answers
// health checks, and lets all other requests wait.
type Doorway struct {
	checks *Router
	// store, if it is known already, asks the store whether it answers.
	store atomic.Pointer[func(context.Context) error]
	// opened is closed when the Doorway is open; before that inside is not set.
	opened chan struct{}
	inside http.Handler
}

// NewDoorway returns a Doorway that is not open. checks is a router without routes, which answers
// health checks meanwhile.
func NewDoorway(checks *Router, version string) *Doorway {
	d := &Doorway{checks: checks, opened: make(chan struct{})}
	checks.Health(version, func(ctx context.Context) error {
		if ask := d.store.Load(); ask != nil {
			return errors.Join(errStarting, (*ask)(ctx))
		}
		return errStarting
	})
	return d
}

// Ask makes health checks ask the store, too, until the Doorway is opened: a server may be starting because its
// store does not answer.
func (d *Doorway) Ask(store func(context.Context) error) { d.store.Store(&store) }

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
