package api

import (
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/time/rate"
)

// A Rate is how many requests a principal may send in a window of time. The allowance
// refills steadily, one request at a time. The zero Rate is no limit.
type Rate struct {
	Requests int
	Window   time.Duration
}

// Rates are the limits of each kind of request.
type Rates struct {
	// Executions are requests that start an execution; continuations are never counted.
	Executions Rate
	// Uploads, Downloads and Lists are requests for files.
	Uploads, Downloads, Lists Rate
}

// A RequestKind is a kind of request with a limit of its own.
type RequestKind int

// The kinds of requests.
const (
	ExecutionRequests RequestKind = iota + 1
	UploadRequests
	DownloadRequests
	ListRequests
)

// Limiters refuse requests beyond the rate of their kind.
type Limiters struct{ by map[RequestKind]*limiter }

// newLimiters returns the limiters of the kinds that have a limit.
func newLimiters(r Rates) *Limiters {
	limiters := map[RequestKind]*limiter{}
	add := func(kind RequestKind, r Rate, refuse func(seconds int) *Error) {
		if r.Requests > 0 {
			limiters[kind] = &limiter{rate: r, refuse: refuse, buckets: map[string]*rate.Limiter{}, swept: time.Now()}
		}
	}
	add(ExecutionRequests, r.Executions, func(seconds int) *Error {
		return tooMany("Too many CodeAPI execution requests. Please retry in %s.", seconds)
	})
	add(UploadRequests, r.Uploads, func(seconds int) *Error { return tooManyFiles("uploads", seconds) })
	add(DownloadRequests, r.Downloads, func(seconds int) *Error { return tooManyFiles("downloads", seconds) })
	add(ListRequests, r.Lists, func(seconds int) *Error { return tooManyFiles("list requests", seconds) })
	return &Limiters{limiters}
}

// Limit returns a middleware that admits only the requests within the limit of their kind.
// It belongs after Needs.
func (ls *Limiters) Limit(kind RequestKind) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if err := ls.Admit(c, kind); err != nil {
				return err
			}
			return next(c)
		}
	}
}

// Admit counts a request of the kind, or refuses it. It sets the headers that tell how
// many are left.
func (ls *Limiters) Admit(c echo.Context, kind RequestKind) error {
	l := ls.by[kind]
	if l == nil {
		return nil
	}
	left := l.take(PrincipalOf(c).ID, time.Now())
	header := c.Response().Header()
	header.Set("RateLimit-Limit", strconv.Itoa(l.rate.Requests))
	header.Set("RateLimit-Remaining", strconv.Itoa(left.requests))
	header.Set("RateLimit-Reset", strconv.Itoa(seconds(left.reset)))
	if left.wait > 0 {
		return l.refuse(seconds(left.wait))
	}
	return nil
}

// seconds rounds up, so that a client that waits for that long is never too early.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// A limiter counts the requests of one kind.
type limiter struct {
	rate   Rate
	refuse func(seconds int) *Error

	mu      sync.Mutex
	buckets map[string]*rate.Limiter // by principal
	swept   time.Time
}

// An allowance is what a principal may still send.
type allowance struct {
	requests int
	// reset is how long it takes until the whole allowance is there again.
	reset time.Duration
	// wait is when a refused request would be admitted, 0 if the request is admitted.
	wait time.Duration
}

func (l *limiter) take(principal string, now time.Time) allowance {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	b := l.buckets[principal]
	if b == nil {
		b = rate.NewLimiter(rate.Limit(float64(l.rate.Requests)/l.rate.Window.Seconds()), l.rate.Requests)
		l.buckets[principal] = b
	}
	var a allowance
	if !b.AllowN(now, 1) {
		r := b.ReserveN(now, 1)
		a.wait = max(r.DelayFrom(now), 1)
		r.CancelAt(now)
	}
	left := max(b.TokensAt(now), 0)
	a.requests = int(left)
	missing := float64(l.rate.Requests) - left
	a.reset = time.Duration(missing / float64(b.Limit()) * float64(time.Second))
	return a
}

// sweep forgets the principals whose allowance is whole again. So there are never more buckets than
// there were principals in the last two windows. mu is held.
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
