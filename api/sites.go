package api

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// executionHeader is on every answer that belongs to an execution, and carries its id.
const executionHeader = "Fermata-Execution"

// protection is on every answer: a browser does not guess its type, shows it in no frame and to no
// page of another site, and tells nobody its address.
var protection = map[string]string{
	echo.HeaderXContentTypeOptions: "nosniff",
	echo.HeaderXFrameOptions:       "DENY",
	echo.HeaderReferrerPolicy:      "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
}

// What pages of Options.Origins may send. A browser remembers it for corsMaxAge seconds.
const (
	corsMethods = "GET, HEAD, POST, DELETE"
	corsHeaders = "authorization, x-api-key, content-type, last-event-id, idempotency-key, x-request-id, x-ptc-call-id"
	corsMaxAge  = "600"
)

// sites decide which requests of web pages a server accepts. A page can make a browser on this machine
// or in its network send requests to this server in two ways: under a name of the page's own that
// resolves to the server's address, which the Host header shows; or as requests from another site,
// which the browser marks, and to which it adds Basic credentials that it knows.
type sites struct {
	// open is true for a server that lets everyone in. Then only addresses, localhost and hosts may
	// name it.
	open  bool
	hosts []string
	// origins are those whose pages may send requests and read the answers.
	origins []string
}

func newSites(open bool, hosts, origins []string) sites {
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = strings.ToLower(strings.TrimSpace(h))
	}
	return sites{open, names, origins}
}

// guard is a middleware before all routes. It refuses requests of foreign pages, and tells browsers
// what the pages of Options.Origins may do.
func (s sites) guard(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request, header := c.Request(), c.Response().Header()
		if s.open && !s.names(request.Host) {
			return errHost
		}
		if len(s.origins) > 0 {
			header.Add(echo.HeaderVary, echo.HeaderOrigin)
		}
		origin := request.Header.Get(echo.HeaderOrigin)
		if !slices.Contains(s.origins, origin) {
			if foreign(request) {
				return errOrigin
			}
			return next(c)
		}
		header.Set(echo.HeaderAccessControlAllowOrigin, origin)
		if request.Method == http.MethodOptions && request.Header.Get(echo.HeaderAccessControlRequestMethod) != "" {
			header.Set(echo.HeaderAccessControlAllowMethods, corsMethods)
			header.Set(echo.HeaderAccessControlAllowHeaders, corsHeaders)
			header.Set(echo.HeaderAccessControlMaxAge, corsMaxAge)
			return c.NoContent(http.StatusNoContent)
		}
		header.Set(echo.HeaderAccessControlExposeHeaders, executionHeader)
		return next(c)
	}
}

// names reports whether a Host names this server. Only addresses and known names count, since
// anybody can give the server's address another name.
func (s sites) names(host string) bool {
	u, err := url.Parse("//" + host)
	if err != nil {
		return false
	}
	name := strings.ToLower(u.Hostname())
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name == "localhost" || slices.Contains(s.hosts, name)
}

// foreign reports whether a browser sends a request for a page of another origin. Other clients send
// neither header.
func foreign(r *http.Request) bool {
	origin := r.Header.Get(echo.HeaderOrigin)
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin":
		// The browser knows best: a proxy may have changed the Host.
		return false
	case "", "none":
		// An old browser, a server that the browser does not reach by TLS, or a person.
		u, err := url.Parse(origin)
		return origin != "" && (err != nil || u.Host != r.Host)
	case "same-site":
		// A page of a neighbour may link to this server, and do nothing else.
		return origin != "" || r.Method != http.MethodGet && r.Method != http.MethodHead
	default:
		return true
	}
}

// CheckOrigin returns what is wrong with an entry of Options.Origins: it must be an origin as browsers
// spell it, since it is compared byte for byte.
func CheckOrigin(origin string) error {
	u, err := url.Parse(origin)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.Scheme+"://"+u.Host != origin, strings.Contains(origin, "*"):
		return errors.New("want an origin such as https://a.example or http://localhost:3000, without a path")
	case strings.ToLower(origin) != origin || strings.ContainsFunc(origin, func(c rune) bool { return c > '~' }):
		return errors.New("browsers write origins in small letters of ASCII (xn--…)")
	case u.Port() == map[string]string{"http": "80", "https": "443"}[u.Scheme], strings.HasSuffix(u.Host, ":"):
		return errors.New("browsers leave out the port that belongs to the scheme")
	}
	return nil
}
