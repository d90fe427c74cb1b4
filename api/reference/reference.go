// Package reference serves the reference of the HTTP API: the OpenAPI document openapi.yaml as JSON, the
// same as a page for people, and a greeting that leads to both. The page is plain HTML without scripts,
// so that it needs no network and cannot touch what the console keeps. The package knows nothing of the
// code that the document describes; tests compare the two.
package reference

import (
	_ "embed"
	"net/http"
	"sync"

	"github.com/labstack/echo/v4"

	"fermata/api"
)

//go:embed openapi.yaml
var source []byte

// Where the reference is.
const (
	documentPath = "/openapi.json"
	pagePath     = "/docs"
	consolePath  = "/console"
)

// Options are the settings of the greeting.
type Options struct {
	// Version is that of the server.
	Version string
	// Console says that the server has a console.
	Console bool
}

// A greeting tells programs where to read on.
type greeting struct {
	Service string `json:"service"`
	Version string `json:"version"`
	Docs    string `json:"docs"`
	OpenAPI string `json:"openapi"`
	Console string `json:"console,omitempty"`
}

// A built is what is served of the reference.
type built struct{ document, page, welcome []byte }

// build makes what is served. An error means that the document is broken.
func build(hello greeting) (b built, err error) {
	d, err := parse(source)
	if err != nil {
		return built{}, err
	}
	if b.document, err = asJSON(source); err != nil {
		return built{}, err
	}
	if b.page, err = referencePage(d); err != nil {
		return built{}, err
	}
	b.welcome, err = welcomePage(hello)
	return b, err
}

// Register registers the routes. They need no key. The pages are made at the first request for one:
// that takes as long as several programs.
func Register(r *api.Router, o Options) {
	hello := greeting{"fermata", o.Version, pagePath, documentPath, ""}
	if o.Console {
		hello.Console = consolePath
	}
	h := handlers{hello, sync.OnceValues(func() (built, error) { return build(hello) })}
	for path, handle := range map[string]echo.HandlerFunc{"/": h.greet, documentPath: h.document, pagePath: h.page} {
		r.Handle(http.MethodGet, path, handle)
		r.Handle(http.MethodHead, path, handle)
	}
}

// handlers are the handlers of the routes.
type handlers struct {
	hello greeting
	built func() (built, error)
}

func (h handlers) document(c echo.Context) error {
	b, err := h.built()
	if err != nil {
		return err
	}
	return api.AnswerBlob(c, http.StatusOK, echo.MIMEApplicationJSON, b.document)
}

func (h handlers) page(c echo.Context) error {
	b, err := h.built()
	if err != nil {
		return err
	}
	return show(c, b.page)
}

// greet answers browsers with a page, and all others with JSON.
func (h handlers) greet(c echo.Context) error {
	c.Response().Header().Add(echo.HeaderVary, echo.HeaderAccept)
	if api.Preferred(c.Request().Header, echo.MIMEApplicationJSON, echo.MIMETextHTML) != echo.MIMETextHTML {
		return api.Answer(c, http.StatusOK, h.hello)
	}
	b, err := h.built()
	if err != nil {
		return err
	}
	return show(c, b.welcome)
}

// show answers with a page, which may have nothing but its style sheet.
func show(c echo.Context, page []byte) error {
	header := c.Response().Header()
	header.Set(echo.HeaderContentSecurityPolicy, policy())
	// A server of another version has another page.
	header.Set(echo.HeaderCacheControl, "no-cache")
	return api.AnswerBlob(c, http.StatusOK, echo.MIMETextHTMLCharsetUTF8, page)
}
