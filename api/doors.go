package api

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// RefusalDelay is how long those wait for their answer whose credentials are wrong, so
// that keys cannot be tried as fast as the network is.
const RefusalDelay = 250 * time.Millisecond

// maxDelayed is how many wait at once. Others are answered at once, and lose their
// connection: they have to make one for each key that they try.
const maxDelayed = 256

// A doorstep is where those wait whose credentials are wrong.
type doorstep struct {
	delay time.Duration
	slots chan struct{}
}

func newDoorstep(delay time.Duration) doorstep {
	return doorstep{delay, make(chan struct{}, maxDelayed)}
}

// wait waits for the delay. It reports false, at once, if too many wait already.
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

// credentialed reports whether a request has credentials of any kind.
func credentialed(header http.Header) bool {
	return header.Get("X-API-Key") != "" || header.Get("Authorization") != ""
}

// sites decide which requests a server takes that lets everyone in. A web page can make
// the browser of somebody on this machine or in its network send requests: to a name of
// the page's own that it has given this server's address (the Host tells), or as a form
// from another site (the browser tells).
type sites struct {
	hosts   []string
	origins *http.CrossOriginProtection
}

func newSites(hosts []string) sites {
	lower := make([]string, len(hosts))
	for i, h := range hosts {
		lower[i] = strings.ToLower(strings.TrimSpace(h))
	}
	return sites{lower, http.NewCrossOriginProtection()}
}

// check refuses requests that come from a web page of another site.
func (s sites) check(r *http.Request) error {
	if !s.names(r.Host) {
		return errHost
	}
	// GET changes nothing, and the browser keeps the answer from the page. Of the others
	// the library refuses those whose Origin is not the Host, or that the browser says are
	// made for another site.
	if s.origins.Check(r) != nil {
		return errOrigin
	}
	return nil
}

// names reports whether a Host names this server: a name that anybody may give it would not.
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
