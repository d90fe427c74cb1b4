// Package outgoing is the only HTTP client for calls that leave the server: to the endpoints of HTTP tools
// and OpenAPI documents, and to MCP servers.
//
// It uses the standard library to read and write HTTP/1.1, but has connections of its own. http.Transport
// does more than is safe for calls on behalf of hostile programs: it repeats requests by itself, shares
// connections between principals, and uses a connection again on which the endpoint has sent too much. A
// Client connects to one origin only and checks the address when it connects. It repeats a request only if
// the request may be repeated and a kept connection turned out to be dead. It does not depend on tools.
package outgoing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// The limits of a client.
const (
	MaxHeaders   = 64 << 10 // bytes of the headers of an answer, with all 1xx answers before it
	MaxFailed    = 64 << 10 // bytes of the body of an answer with an error status
	MaxRedirects = 5
	DefaultIdle  = 15 * time.Second // between two bytes of an answer
	DialTimeout  = 5 * time.Second  // for a connection, with TLS and the proxy

	maxInterim       = 8                // 1xx answers before an answer
	maxKept          = 256              // kept connections of a client
	maxKeptPrincipal = 8                // kept connections of one principal
	keptFor          = 60 * time.Second // how long a connection is kept without use
)

// Options describe a client.
type Options struct {
	// Origin has the scheme, http or https, and the host to which all requests go.
	Origin *url.URL
	// Private allows addresses of private networks, and of this machine.
	Private bool
	// Forbidden are addresses to which the client never connects, whatever Private says: the listeners of this
	// server. An unspecified address stands for all addresses of this machine.
	Forbidden []netip.AddrPort
	// Proxy is the URL of the proxy for all connections, or nil. Its scheme is http, https or socks5. Addresses
	// are not checked then: the operator has named the proxy, and the proxy looks up the endpoint.
	Proxy *url.URL
	// Idle is the maximum time between two bytes of an answer. 0 means DefaultIdle.
	Idle time.Duration
	// Budget limits the bytes of the answers in memory. It may be nil.
	Budget *Budget
	// RootCAs are the trusted certificate authorities, or nil for those of the system.
	RootCAs *x509.CertPool
}

// A Client calls one origin. It is safe for concurrent use.
type Client struct {
	origin origin
	proxy  *url.URL
	rules  rules
	idle   time.Duration
	budget *Budget
	tls    *tls.Config
	pool   pool
}

// New returns a client. Its errors contain neither the origin nor the proxy, which may have secrets.
func New(o Options) (*Client, error) {
	origin, err := originOf(o.Origin)
	if err != nil {
		return nil, fmt.Errorf("the URL of the endpoint %w", err)
	}
	if o.Proxy != nil && (o.Proxy.Hostname() == "" || o.Proxy.Scheme != "http" && o.Proxy.Scheme != "https" && o.Proxy.Scheme != "socks5") {
		return nil, errors.New("the URL of the proxy must begin with http, https or socks5, and have a host")
	}
	c := &Client{
		origin: origin,
		proxy:  o.Proxy,
		rules:  rules{private: o.Private, forbidden: o.Forbidden},
		idle:   o.Idle,
		budget: o.Budget,
		tls:    &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs, NextProtos: []string{"http/1.1"}},
	}
	if c.idle <= 0 {
		c.idle = DefaultIdle
	}
	c.pool.all = map[*conn]bool{}
	c.pool.kept = map[string][]*conn{}
	return c, nil
}

// Close closes all connections. Calls that run fail.
func (c *Client) Close() { c.pool.close() }

// HTTP returns an http.Client of a principal for libraries that need one. It follows no redirects, uses a new
// connection for all requests except GET and HEAD, and does not limit the size of bodies.
func (c *Client) HTTP(principal string) *http.Client {
	return &http.Client{
		Transport:     roundTripper{client: c, principal: principal},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// roundTripper makes a Client usable as the transport of an http.Client.
type roundTripper struct {
	client    *Client
	principal string
}

// RoundTrip implements http.RoundTripper.
func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.client.exchange(r.Context(), t.principal, r.Method == http.MethodGet || r.Method == http.MethodHead, r)
}

// An origin is a scheme, a host and a port.
type origin struct{ scheme, host, port string }

var errOrigin = errors.New("must begin with http:// or https://, and have a host")

// originOf returns the origin of a URL.
func originOf(u *url.URL) (origin, error) {
	if u == nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return origin{}, errOrigin
	}
	o := origin{u.Scheme, asciiLower(u.Hostname()), u.Port()}
	if o.port == "" {
		o.port = map[string]string{"http": "80", "https": "443"}[o.scheme]
	}
	return o, nil
}

// asciiLower converts ASCII letters to lower case, since the case of these is ignored in the name of a host.
func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// send makes one request of a call.
func (c *Client) send(ctx context.Context, r Request, u *url.URL) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, u.String(), r.reader())
	if err != nil {
		return nil, &Error{Reason: WrongRequest, Err: err}
	}
	maps.Copy(req.Header, r.Header)
	req.Header.Set("Accept-Encoding", "gzip")
	return c.exchange(ctx, r.Principal, r.Repeatable, req)
}
