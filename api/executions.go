package api

import (
	"log/slog"

	"github.com/labstack/echo/v4"

	"fermata/engine/journal"
)

// ViewerOf returns the principal of a request as one who looks at executions.
func ViewerOf(c echo.Context) journal.Viewer {
	who := PrincipalOf(c)
	return journal.Viewer{Principal: who.ID, Operator: who.Operator}
}

// FindExecution returns the execution that the path of a request names. If an operator looks at the
// execution of another principal, it logs that.
func FindExecution(c echo.Context, history *journal.History, log *slog.Logger) (*journal.Execution, error) {
	who := ViewerOf(c)
	x, err := history.Find(c.Request().Context(), who, c.Param("id"))
	if err != nil {
		return nil, err
	}
	Note(c, slog.String("execution", x.ID()))
	if who.Operator && x.Principal() != who.Principal {
		log.Info("an operator looks at an execution", "principal", who.Principal, "route", c.Path(), "execution", x.ID(), "of", x.Principal())
	}
	return x, nil
}

// Private is a middleware that keeps answers out of caches, since they depend on the principal, and change.
func Private(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
		return next(c)
	}
}
