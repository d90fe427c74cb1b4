// Package api has what all HTTP contracts of the server share: the router, the access log, the
// table of errors, the bounds on bodies, connections and rates, and the door that admits only
// known principals. Each contract is a package below this one, which registers its routes with a
// Router. No package here knows sandboxes, stores or what a continuation token holds.
package api

import (
	"cmp"
	"log/slog"
	"maps"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"fermata/api/auth"
)

// The limits of the run budget that a client may ask for, and the budget of a client
// that does not ask.
const (
	MinTimeout     = time.Second
	MaxTimeout     = 300 * time.Second
	DefaultTimeout = 60 * time.Second
)

// Options are the settings that all contracts share.
type Options struct {
	// Auth finds the principal of a request.
	Auth *auth.Authenticator
	// Open lets everyone in, as the principal "anonymous", without looking at
	// credentials.
	Open bool
	// Hosts are the names by which clients may call an open server, in addition to IP
	// addresses and localhost.
	Hosts []string
	// Origins are the origins whose web pages may send requests and read the answers, as CheckOrigin
	// wants them.
	Origins []string
	// RefusalDelay is how long a client with wrong credentials waits for its answer.
	RefusalDelay time.Duration
	// Rates bound how many requests a principal may send.
	Rates Rates
	// BodyTimeout is how long a body may take to arrive, BodyTimeout if it is 0. Uploads
	// have a rule of their own.
	BodyTimeout time.Duration
	// BodyBudget is how many bytes of bodies the server may hold at once, of which a
	// principal may have a quarter; DefaultBodyBudget if it is 0.
	BodyBudget int64
	// Log gets one line per request.
	Log *slog.Logger
	// Observe, if set, is called for every answered request with the pattern of its
	// route, or "none"; with its method, or "other" if no route has that method; and with
	// status and duration. None of these contains text that a client chose.
	Observe func(route, method string, status int, took time.Duration)
}

// A Router serves the routes that contracts register. All routes must be registered
// before it serves the first request.
type Router struct {
	// Bodies reads the bodies of requests within the limits.
	Bodies *Bodies
	// Assembled limits the answers that are made as a whole and may be large: pages, lists and documents.
	Assembled *Room
	// Limiters refuse requests that come too often.
	Limiters *Limiters

	echo     *echo.Echo
	auth     *auth.Authenticator
	open     bool
	doorstep doorstep

	compressors compressors
	headers     map[string]string
	envelopes   map[string]Envelope
	log         *slog.Logger
	observe     func(route, method string, status int, took time.Duration)
}

// New returns a Router without routes.
func New(o Options) *Router {
	r := &Router{
		Bodies: &Bodies{
			budget:  newBudget(cmp.Or(o.BodyBudget, DefaultBodyBudget)),
			timeout: cmp.Or(o.BodyTimeout, BodyTimeout),
		},
		Assembled:   NewRoom(assembledBytes, assembledPlaces, "pages, lists and documents"),
		Limiters:    newLimiters(o.Rates),
		echo:        echo.New(),
		auth:        o.Auth,
		open:        o.Open,
		doorstep:    newDoorstep(o.RefusalDelay),
		compressors: newCompressors(),
		headers:     maps.Clone(protection),
		envelopes:   map[string]Envelope{},
		log:         o.Log,
		observe:     o.Observe,
	}
	r.echo.Pre(r.Bodies.bound, tidy)
	r.echo.Use(r.around, newSites(o.Open, o.Hosts, o.Origins).guard, plainBodies)
	return r
}

// Handle registers a route. The request passes the middlewares in the given order.
func (r *Router) Handle(method, path string, h echo.HandlerFunc, before ...echo.MiddlewareFunc) {
	r.echo.Add(method, path, h, before...)
}

// Routes returns all routes that were registered.
func (r *Router) Routes() []*echo.Route { return r.echo.Routes() }

// Header sets a header that every answer carries.
func (r *Router) Header(name, value string) { r.headers[name] = value }

// An Envelope returns what a contract answers instead of a bare Error. It is encoded as
// JSON.
type Envelope func(c echo.Context, e *Error) any

// Envelope sets the form of the errors on one path, as it was given to Handle. It applies to all
// methods, so that requests with a wrong method get it as well.
func (r *Router) Envelope(path string, e Envelope) { r.envelopes[path] = e }

// ServeHTTP implements http.Handler.
func (r *Router) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.echo.ServeHTTP(w, request)
}
