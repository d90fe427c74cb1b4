// Package api is the HTTP side of the server and nothing else: it
// authenticates, decodes, validates, calls the executions and encodes what they
// say. It knows nothing of sandboxes, stores or what a continuation token holds.
package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-playground/validator/v10"
	"github.com/labstack/echo/v4"

	"fermata/engine"
	"fermata/engine/files"
)

// Executions are what the handlers call; *engine.Engine is one. An Outcome with
// its error nil is how a request left its execution. Start and Resume may take as
// long as the longest run budget and end early when ctx is cancelled.
type Executions interface {
	// Start runs a program until it pauses or ends.
	Start(ctx context.Context, s engine.Start) (engine.Outcome, error)
	// Resume goes on with a paused execution until it pauses again or ends.
	Resume(ctx context.Context, r engine.Resume) (engine.Outcome, error)
	// Cancel ends what a request has begun, or refuses the request if it comes later.
	Cancel(ctx context.Context, c engine.Cancel) (engine.Cancelling, error)
	// Ready returns nil if new executions can be started now.
	Ready(ctx context.Context) error
}

// An ErrorStyle says how the failure of an execution is told to the client.
type ErrorStyle string

// The error styles.
const (
	// HTTPErrors answers a spent budget with 408 and too many rounds with 400.
	HTTPErrors ErrorStyle = "http"
	// InlineErrors answers both with 200 and a body of status "error": some
	// clients throw the body of any other status away. Refusals of a request
	// keep their status.
	InlineErrors ErrorStyle = "inline"
)

// A Key lets a client in. Keys of the same name are the same principal.
type Key struct {
	// Name is the principal. It is logged.
	Name string
	// Key is the secret.
	Key string
}

// Limits bound what one request may bring. All of them must be set.
type Limits struct {
	// Body is the size of a body in bytes.
	Body int64
	// Tools is the number of tool definitions.
	Tools int
	// Results is the number of tool results.
	Results int
	// ResultBytes is the size of one result.
	ResultBytes int
}

// Options are the settings of the handler.
type Options struct {
	// Keys are the keys that are accepted.
	Keys []Key
	// JWT verifies tokens, which are accepted beside keys; nil if none are.
	JWT *JWT
	// Open lets everyone in, as the principal "anonymous". Keys and tokens
	// are not looked at.
	Open bool
	// Hosts are the names by which clients may call an open server, beside addresses and
	// localhost.
	Hosts []string
	// RefusalDelay is how long those wait whose credentials are wrong.
	RefusalDelay time.Duration
	// Errors is the style of errors.
	Errors ErrorStyle
	// Limits bound a request.
	Limits Limits
	// Rates bound how often a principal may ask.
	Rates Rates
	// Log gets one line per request.
	Log *slog.Logger
	// Version is what /health reports.
	Version string
	// Files keeps the files of sessions; without it there are no routes for files.
	Files *files.Store
	// BodyTimeout is how long a body may take, BodyTimeout if it is 0. Uploads have a
	// rule of their own.
	BodyTimeout time.Duration
	// BodyBudget is how many bytes of bodies the server may hold at once, and a principal
	// a quarter of them; DefaultBodyBudget if it is 0.
	BodyBudget int64
	// UploadMemory is what the store of files holds in memory of an upload under way. It
	// counts as bytes of a body.
	UploadMemory int64
	// PeerKey lets other servers hand requests over; nil if there are none, or if they
	// have a handler of their own.
	PeerKey *PeerKey
	// Observe, if set, gets every request that was answered: the pattern of its route,
	// or "none"; its method, or "other" where no route has it; status and duration.
	// None of them has a text of the client's.
	Observe func(route, method string, status int, took time.Duration)
}

// The limits of the run budget that a client may ask for, and what it gets if it
// does not ask.
const (
	MinTimeout     = time.Second
	MaxTimeout     = 300 * time.Second
	DefaultTimeout = 60 * time.Second
)

// DefaultBodyBudget is what the bodies of all requests may hold at once, in bytes.
const DefaultBodyBudget = 512 << 20

const (
	execPath         = "/exec"
	programmaticPath = "/exec/programmatic"
	cancelPath       = programmaticPath + "/cancel"
)

// readyTimeout bounds a health check, so that a store that hangs is reported
// and not waited for.
const readyTimeout = 2 * time.Second

type server struct {
	executions Executions
	options    Options
	keys       []keyHash
	validate   *validator.Validate
	limiters   map[limited]*limiter
	bodies     *budget
	doorstep   doorstep
	sites      sites
	// bodyTimeout is how long a body may take.
	bodyTimeout time.Duration
}

func newServer(executions Executions, o Options) *server {
	return &server{
		executions: executions, options: o, keys: hashKeys(o.Keys), validate: newValidator(), limiters: newLimiters(o.Rates),
		doorstep:    newDoorstep(o.RefusalDelay),
		sites:       newSites(o.Hosts),
		bodies:      newBudget(cmp.Or(o.BodyBudget, DefaultBodyBudget)),
		bodyTimeout: cmp.Or(o.BodyTimeout, BodyTimeout),
	}
}

// router returns a router without routes.
func (s *server) router() *echo.Echo {
	e := echo.New()
	e.Pre(s.bounded)
	e.Use(s.observe)
	return e
}

// New returns the handler of all routes.
func New(executions Executions, o Options) http.Handler {
	s := newServer(executions, o)
	e := s.router()
	for _, prefix := range []string{"", "/v1"} {
		e.POST(prefix+execPath, s.exec, s.authenticated, s.limit(executionRequests))
		e.POST(prefix+programmaticPath, s.programmatic, s.authenticated)
		e.POST(prefix+cancelPath, s.cancel, s.authenticated)
		s.fileRoutes(e, prefix)
		e.GET(prefix+"/health", s.health)
		e.GET(prefix+"/ready", s.health)
	}
	if o.PeerKey != nil {
		s.peerRoutes(e)
	}
	return e
}

// NewPeerHandler returns the handler of what other servers ask, and nothing else.
func NewPeerHandler(executions Executions, o Options) http.Handler {
	s := newServer(executions, o)
	e := s.router()
	s.peerRoutes(e)
	return e
}

func (s *server) peerRoutes(e *echo.Echo) {
	e.POST(peerResumePath, s.peerResume)
	e.POST(peerCancelPath, s.peerCancel)
}

// programmatic starts an execution or goes on with one.
func (s *server) programmatic(c echo.Context) error {
	header := c.Request().Header
	if err := checkRouting(header); err != nil {
		return err
	}
	// Only the body tells a continuation, which is never refused for its rate, from a
	// start: the rate comes after the body here. The budget of bodies bounds both.
	p, err := s.receive(c, "")
	if err != nil {
		return err
	}
	if err := checkWorkspace(header, p.request); err != nil {
		return err
	}

	var outcome engine.Outcome
	if p.continues() {
		resume, err := s.resume(p.request)
		if err != nil {
			return err
		}
		resume.Principal, resume.RequestID, resume.Request = principal(c).ID, p.id, p.hash
		outcome, err = s.executions.Resume(c.Request().Context(), resume)
		if err != nil {
			return err
		}
		if err := holdAnswer(c, outcome); err != nil {
			return err
		}
	} else {
		// A continuation is never refused for its rate: the client would lose the
		// whole execution.
		if err := s.admit(c, executionRequests); err != nil {
			return err
		}
		if outcome, err = s.begin(c, p, true, s.start); err != nil {
			return err
		}
	}
	status, answer, err := encodeOutcome(outcome, s.options.Errors)
	if err != nil {
		return err
	}
	return write(c, status, answer)
}

// A posted request is one that runs a program, on either route.
type posted struct {
	request
	// id is the client's name for the request, key that for the execution.
	id, key string
	// hash tells the request from others.
	hash string
}

// receive reads a request that runs a program; kind tells the same body on another
// route apart.
func (s *server) receive(c echo.Context, kind string) (p posted, err error) {
	if p.id, p.key, err = idsOf(c.Request().Header); err != nil {
		return p, err
	}
	hash := sha256.New()
	_, _ = io.WriteString(hash, kind)
	body, err := s.readBody(c, s.options.Limits.Body, hash)
	if err != nil {
		return p, err
	}
	p.hash = hex.EncodeToString(hash.Sum(nil))
	p.request, err = decode(body, s.options.Limits)
	return p, err
}

// begin starts an execution, of a program that calls tools or of one that does not. What
// only its route knows of it is for build to say.
func (s *server) begin(c echo.Context, p posted, callsTools bool, build func(request) (engine.Start, error)) (engine.Outcome, error) {
	session, given, err := sessionOf(p.request)
	if err != nil {
		return engine.Outcome{}, err
	}
	if given {
		c.Set(sessionKey, session)
	}
	start, err := build(p.request)
	if err != nil {
		return engine.Outcome{}, err
	}
	references, err := s.references(c, p.Files, callsTools)
	if err != nil {
		return engine.Outcome{}, err
	}
	if err := s.attach(c, &start, session, given, references); err != nil {
		return engine.Outcome{}, err
	}
	start.Principal, start.RequestID, start.Key, start.Request = principal(c).ID, p.id, p.key, p.hash
	outcome, err := s.executions.Start(c.Request().Context(), start)
	// A file that was there when it was looked for may be gone.
	return outcome, referenceError(err)
}

// health reports whether executions can be started, to anyone who asks.
func (s *server) health(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyTimeout)
	defer cancel()
	status, word := http.StatusOK, "healthy"
	err := s.executions.Ready(ctx)
	if err == nil && s.options.Files != nil {
		err = s.options.Files.Ready()
	}
	if err != nil {
		status, word = http.StatusServiceUnavailable, "unhealthy"
	}
	c.Set(causeKey, err)
	var o object
	o.text("status", word)
	o.text("version", s.options.Version)
	o.text("service", "fermata")
	return write(c, status, o.end())
}
