// Package console serves the console: one page that shows executions to people, and lets them
// write programs and answer their calls by hand. The page uses the routes that all clients have,
// with the key that its reader types in. This package does not depend on those routes. It assembles the page
// and the policy that tells the browser what the page may do.
package console

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"fermata/api"
)

// Register registers the route of the page. The route needs no key, and the page tells nothing about the
// server. An error means that the files of the page do not fit together.
func Register(r *api.Router) error {
	p, err := assemble()
	if err != nil {
		return err
	}
	for _, path := range []string{"/console", "/v1/console"} {
		r.Handle(http.MethodGet, path, p.serve)
		r.Handle(http.MethodHead, path, p.serve)
	}
	return nil
}

func (p page) serve(c echo.Context) error {
	header := c.Response().Header()
	header.Set(echo.HeaderContentSecurityPolicy, p.policy)
	// Browsers must ask each time, since another version of the server has another page.
	header.Set(echo.HeaderCacheControl, "no-cache")
	return api.AnswerBlob(c, http.StatusOK, echo.MIMETextHTMLCharsetUTF8, p.document)
}
