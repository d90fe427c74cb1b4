package api

import (
	"github.com/labstack/echo/v4"

	"fermata/api/auth"
)

// factsKey is where the facts of a request are kept in its context.
const factsKey = "facts"

// The facts are what becomes known of a request on its way and concerns more than the
// function that finds it out.
type facts struct {
	// principal is whose request it is, nil before that is known.
	principal *auth.Principal
	// session is the session that answers name.
	session string
	// cause is what went wrong, for the log.
	cause error
	// held is the memory that the request holds.
	held *lease
}

func factsOf(c echo.Context) *facts {
	f, ok := c.Get(factsKey).(*facts)
	if !ok {
		f = new(facts)
		c.Set(factsKey, f)
	}
	return f
}

// PrincipalOf returns whose request it is. Without Authenticated before it, that is the
// zero Principal.
func PrincipalOf(c echo.Context) auth.Principal {
	if who := factsOf(c).principal; who != nil {
		return *who
	}
	return auth.Principal{}
}

// SessionOf returns the session that was set with SetSession, if any.
func SessionOf(c echo.Context) string { return factsOf(c).session }

// SetSession notes the session that an error of the request is to name.
func SetSession(c echo.Context, session string) { factsOf(c).session = session }

// SetCause notes an error that the answer does not tell. The request is then logged at
// level error.
func SetCause(c echo.Context, err error) { factsOf(c).cause = err }
