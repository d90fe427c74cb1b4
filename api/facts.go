package api

import (
	"log/slog"

	"github.com/labstack/echo/v4"

	"fermata/api/auth"
)

// factsKey is where the facts of a request are kept in its context.
const factsKey = "facts"

// The facts are what the server finds out about a request in one place and needs in another.
type facts struct {
	// principal sent the request; it is nil before that is known.
	principal *auth.Principal
	// session is the session that the answer names.
	session string
	// place is the place of the answer among those that are made as a whole, or nil.
	place *Place
	// cause is what went wrong, for the log.
	cause error
	// warning is what an operator should know of a request that was served all the same.
	warning string
	// notes are further attributes for the log; line has those about an execution and about a refusal.
	notes []slog.Attr
	line  line
	// compressors compress the answer; they are nil if nothing does.
	compressors *compressors
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

// PrincipalOf returns the principal of a request, or the zero Principal if the request has not
// passed Needs.
func PrincipalOf(c echo.Context) auth.Principal {
	if who := factsOf(c).principal; who != nil {
		return *who
	}
	return auth.Principal{}
}

// SessionOf returns the session that was set with SetSession, if any.
func SessionOf(c echo.Context) string { return factsOf(c).session }

// SetSession sets the session that an error answer to the request names.
func SetSession(c echo.Context, session string) { factsOf(c).session = session }

// SetCause notes an error for the log that the client is not told. The request is then logged at
// level error.
func SetCause(c echo.Context, err error) { factsOf(c).cause = err }

// Warn notes for the log what is wrong with a request that is served all the same. The request is then
// logged at level warn, unless it is an error.
func Warn(c echo.Context, text string) { factsOf(c).warning = text }

// Note adds to what the log tells of the request.
func Note(c echo.Context, notes ...slog.Attr) {
	f := factsOf(c)
	f.notes = append(f.notes, notes...)
}

// SetExecution tells the client, and the log, to which execution the answer belongs. It must come
// before the answer, and does nothing if execution is empty.
func SetExecution(c echo.Context, execution string) {
	if execution != "" {
		factsOf(c).line.execution = execution
		c.Response().Header().Set(executionHeader, execution)
	}
}
