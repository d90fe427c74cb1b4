package api

import (
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/time/rate"
)

// A Rate is how many requests a principal may send in a time. Those that it has
// not sent come back to it one by one. The zero Rate is no limit.
type Rate struct {
	Requests int
	Window   time.Duration
}

// Rates are the limits of each kind of request.
type Rates struct {
	// Executions are requests that start one; continuations are never counted.
	Executions Rate
	// Uploads, Downloads and Lists are requests for files.
	Uploads, Downloads, Lists Rate
}

// limited is a kind of request that has a limit of its own.
type limited int

const (
	executionRequests limited = iota + 1
	uploadRequests
	downloadRequests
	listRequests
)

// newLimiters returns the limiters of the kinds that have a limit.
func newLimiters(r Rates) map[limited]*limiter {
	limiters := map[limited]*limiter{}
	add := func(kind limited, r Rate, refuse func(seconds int) *failure) {
		if r.Requests > 0 {
			limiters[kind] = &limiter{rate: r, refuse: refuse, buckets: map[string]*rate.Limiter{}, swept: time.Now()}
		}
	}
	add(executionRequests, r.Executions, func(seconds int) *failure {
		return tooMany("Too many CodeAPI execution requests. Please retry in %s.", seconds)
	})
	add(uploadRequests, r.Uploads, func(seconds int) *failure { return tooManyFiles("uploads", seconds) })
	add(downloadRequests, r.Downloads, func(seconds int) *failure { return tooManyFiles("downloads", seconds) })
	add(listRequests, r.Lists, func(seconds int) *failure { return tooManyFiles("list requests", seconds) })
	return limiters
}

// limit lets next see only the requests that are within the limit of their kind.
// It belongs after authenticated.
func (s *server) limit(kind limited) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if err := s.admit(c, kind); err != nil {
				return err
			}
			return next(c)
		}
	}
}

// admit counts a request of the kind, or refuses it. It sets the headers that tell
// what is left.
func (s *server) admit(c echo.Context, kind limited) error {
	l := s.limiters[kind]
	if l == nil {
		return nil
	}
	q := l.take(principal(c).ID, time.Now())
	header := c.Response().Header()
	header.Set("RateLimit-Limit", strconv.Itoa(l.rate.Requests))
	header.Set("RateLimit-Remaining", strconv.Itoa(q.remaining))
	header.Set("RateLimit-Reset", strconv.Itoa(seconds(q.reset)))
	if q.wait > 0 {
		return l.refuse(seconds(q.wait))
	}
	return nil
}

// seconds rounds up, so that a client that waits as long is never too early.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// A limiter counts the requests of one kind.
type limiter struct {
	rate   Rate
	refuse func(seconds int) *failure

	mu      sync.Mutex
	buckets map[string]*rate.Limiter // by principal
	swept   time.Time
}

// A quota is what a principal has left.
type quota struct {
	remaining int
	// reset is when all of it will be there again.
	reset time.Duration
	// wait is when a request that is refused would be admitted, 0 for one that is.
	wait time.Duration
}

func (l *limiter) take(principal string, now time.Time) quota {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	b := l.buckets[principal]
	if b == nil {
		b = rate.NewLimiter(rate.Limit(float64(l.rate.Requests)/l.rate.Window.Seconds()), l.rate.Requests)
		l.buckets[principal] = b
	}
	var q quota
	if !b.AllowN(now, 1) {
		r := b.ReserveN(now, 1)
		q.wait = max(r.DelayFrom(now), 1)
		r.CancelAt(now)
	}
	left := max(b.TokensAt(now), 0)
	q.remaining = int(left)
	missing := float64(l.rate.Requests) - left
	q.reset = time.Duration(missing / float64(b.Limit()) * float64(time.Second))
	return q
}

// sweep forgets who has been quiet for so long that nothing is missing, so that
// there are never more buckets than principals of two windows. mu is held.
func (l *limiter) sweep(now time.Time) {
	if now.Sub(l.swept) < l.rate.Window {
		return
	}
	l.swept = now
	for principal, b := range l.buckets {
		if b.TokensAt(now) >= float64(l.rate.Requests) {
			delete(l.buckets, principal)
		}
	}
}
