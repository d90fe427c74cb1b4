package api

import (
	"context"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"fermata/api/auth"
)

// RefusalDelay is how long clients with wrong credentials wait for their answer, so that
// keys cannot be tried as fast as the network is.
const RefusalDelay = 250 * time.Millisecond

// maxDelayed is how many clients wait at the same time. Further ones are answered at once and lose
// their connection, so that they have to open a new one for each key that they try.
const maxDelayed = 256

// anonymous is the principal of all requests to an open server.
var anonymous = auth.Principal{ID: auth.Anonymous}

// A Right is what a route lets its clients do. Each route with principals needs one right.
type Right int

const (
	// Use is to start and continue executions, and to cancel one's own requests.
	Use Right = iota + 1
	// Change is to store, delete and forget.
	Change
	// See is to look at executions and files.
	See
	// End is to end an execution, by its id, its token or its session.
	End
)

// operators are the rights of operators. All other principals have all rights, on what is theirs.
var operators = []Right{See, End}

// Needs returns a middleware that admits only principals with a right. It refuses all others before
// their body is read.
func (r *Router) Needs(right Right) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			who, err := r.authenticate(c)
			if err != nil {
				return err
			}
			factsOf(c).principal = &who
			if who.Operator && !slices.Contains(operators, right) {
				return ErrOperator
			}
			defer Occupy(c.Request().Context(), who.ID)()
			return next(c)
		}
	}
}

func (r *Router) authenticate(c echo.Context) (auth.Principal, error) {
	request := c.Request()
	if r.open {
		return anonymous, nil
	}
	who, err := r.auth.Authenticate(request.Header)
	if err != nil && auth.HasCredentials(request.Header) && !r.doorstep.wait(request.Context()) {
		c.Response().Header().Set(echo.HeaderConnection, "close")
	}
	return who, err
}

// A doorstep is where clients with wrong credentials wait.
type doorstep struct {
	delay time.Duration
	slots chan struct{}
}

func newDoorstep(delay time.Duration) doorstep {
	return doorstep{delay, make(chan struct{}, maxDelayed)}
}

// wait waits for the delay. If too many wait already, it returns false at once.
func (d doorstep) wait(ctx context.Context) bool {
	if d.delay == 0 {
		return true
	}
	select {
	case d.slots <- struct{}{}:
	default:
		return false
	}
	defer func() { <-d.slots }()
	select {
	case <-time.After(d.delay):
	case <-ctx.Done():
	}
	return true
}
