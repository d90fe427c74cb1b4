// Package httptool calls HTTP endpoints as tools: those that the toolsets file describes, and those of
// OpenAPI documents. It turns an input into a request and an answer into a result. It does not depend on who
// may call a tool, on costs, on envelopes, or on the files in which tools are described.
package httptool

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"fermata/engine/tools/outgoing"
	"fermata/engine/tools/source"
)

// The limits of a source.
const (
	DefaultTimeout   = 30 * time.Second
	DefaultMaxResult = 5_000_000 // bytes

	firstWait = 200 * time.Millisecond // before the first repetition, if the endpoint says nothing
	longest   = 5 * time.Second        // between two repetitions
)

// Options describe a source.
type Options struct {
	// BaseURL is the URL to which the paths of the operations are relative. Its query is sent with every call.
	BaseURL string
	// Headers are sent with every call.
	Headers    map[string]string
	Operations []Operation
	// Timeout is how long a call may take, including all of its retries. 0 means DefaultTimeout.
	Timeout time.Duration
	// Idle bounds the time between two bytes of an answer. 0 means outgoing.DefaultIdle.
	Idle time.Duration
	// Retries is how often a call may be repeated, if its tool is idempotent. If it is 0 no request is sent
	// twice, and each has a connection of its own.
	Retries int
	// Private, Forbidden, Proxy, Budget and RootCAs are those of outgoing.Options. Proxy is a URL, or
	// empty.
	Private   bool
	Forbidden []netip.AddrPort
	Proxy     string
	Budget    *outgoing.Budget
	RootCAs   *x509.CertPool
	// Mask masks the secrets in a text. It is applied to the errors of endpoints before they are truncated.
	// It may be nil.
	Mask func(string) string
}

// Source is a source of tools that are HTTP requests.
type Source struct {
	client     *outgoing.Client
	operations []*operation
	headers    http.Header
	timeout    time.Duration
	retries    int
	mask       func(string) string
}

var _ source.Source = (*Source)(nil)

// New returns a source. It makes no connection. Its errors contain no secret.
func New(o Options) (*Source, error) {
	base, err := url.Parse(o.BaseURL)
	if err != nil || base.User != nil || base.Fragment != "" || base.Opaque != "" {
		return nil, errors.New("the base URL is not a URL, or has a user, a password or a fragment")
	}
	var proxy *url.URL
	if o.Proxy != "" {
		if proxy, err = url.Parse(o.Proxy); err != nil {
			return nil, errors.New("the proxy is not a URL")
		}
	}
	s := &Source{headers: http.Header{}, timeout: o.Timeout, retries: o.Retries, mask: o.Mask}
	if s.timeout <= 0 {
		s.timeout = DefaultTimeout
	}
	for name, value := range o.Headers {
		if !isToken(name) || slices.Contains(notConfigured, strings.ToLower(name)) {
			return nil, fmt.Errorf("the header %q cannot be set", name)
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r > '~' }) {
			return nil, fmt.Errorf("the header %q has characters that no header may have", name)
		}
		s.headers.Set(name, value)
	}
	s.client, err = outgoing.New(outgoing.Options{
		Origin: base, Private: o.Private, Forbidden: o.Forbidden, Proxy: proxy, Idle: o.Idle,
		Budget: o.Budget, RootCAs: o.RootCAs,
	})
	if err != nil {
		return nil, err
	}
	for _, op := range o.Operations {
		if s.find(op.Name) != nil {
			return nil, fmt.Errorf("two operations have the name %s", op.Name)
		}
		prepared, err := s.prepare(op, base)
		if err != nil {
			return nil, err
		}
		s.operations = append(s.operations, prepared)
	}
	return s, nil
}

// prepare checks an operation and hides the parameters that the operator has set.
func (s *Source) prepare(o Operation, base *url.URL) (*operation, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	pieces, err := parsePath(o.Path)
	if err != nil {
		return nil, err
	}
	p := &operation{Operation: o, pieces: pieces, base: base, taken: map[string]bool{}}
	constant, err := url.ParseQuery(o.Query)
	if err != nil {
		return nil, err
	}
	for _, query := range []url.Values{base.Query(), constant} {
		for name := range query {
			p.taken[strings.ToLower(name)] = true
		}
	}
	for _, parameter := range o.Parameters {
		sent := strings.ToLower(parameter.sent())
		if parameter.In == InQuery && p.taken[sent] || parameter.In == InHeader && s.headers.Get(sent) != "" {
			p.hidden = append(p.hidden, parameter.Name)
		}
	}
	if len(p.Input) == 0 {
		p.Input = json.RawMessage(`{"type":"object"}`)
	}
	p.Input = without(p.Input, p.hidden)
	if !p.Rest {
		p.Input = closed(p.Input)
	}
	return p, nil
}

// find returns an operation, or nil.
func (s *Source) find(name string) *operation {
	for _, o := range s.operations {
		if o.Name == name {
			return o
		}
	}
	return nil
}

// Tools implements source.Source.
func (s *Source) Tools(context.Context) ([]source.Tool, error) {
	tools := make([]source.Tool, len(s.operations))
	for i, o := range s.operations {
		tools[i] = source.Tool{Name: o.Name, Description: o.Description, Input: o.Input, Output: o.Output, Idempotent: o.Idempotent()}
	}
	return tools, nil
}

// Texts returns the names of the parameters that are sent as text, in the path, the query, a header or a
// form, so that "5" passes for 5 in them.
func (s *Source) Texts(tool string) []string {
	o := s.find(tool)
	if o == nil {
		return nil
	}
	var names []string
	for _, p := range o.Parameters {
		if p.Style != StyleJSON && (p.In == InPath || p.In == InQuery || p.In == InHeader || p.In == InBody && o.isForm()) {
			names = append(names, p.Name)
		}
	}
	return names
}

// Close implements source.Source.
func (s *Source) Close(context.Context) error {
	s.client.Close()
	return nil
}

// Call implements source.Source.
func (s *Source) Call(ctx context.Context, c source.Call) (json.RawMessage, error) {
	o := s.find(c.Tool)
	if o == nil {
		return nil, &source.CallError{Message: "the toolset has no such tool"}
	}
	r, err := o.build(c.Input)
	if err != nil {
		return nil, &source.CallError{Message: err.Error()}
	}
	s.complete(r, c)
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	tries := uint(1)
	if c.Idempotent && s.retries > 0 {
		tries += uint(s.retries)
	}
	var last error // If the time is over, the last error of the endpoint is more useful than that.
	result, err := backoff.Retry(ctx, func() (json.RawMessage, error) {
		result, failure := s.once(ctx, o, r, c)
		last = failure
		if failure == nil {
			return result, nil
		}
		return nil, again(ctx, failure)
	}, backoff.WithMaxTries(tries), backoff.WithMaxElapsedTime(0), backoff.WithBackOff(&backoff.ExponentialBackOff{
		InitialInterval: firstWait, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: longest,
	}))
	if err == nil {
		return result, nil
	}
	if failure, ok := errors.AsType[*failed](last); ok {
		return nil, &failure.CallError
	}
	return nil, err
}

// complete adds the headers that all calls have. Those of the operator take precedence.
func (s *Source) complete(r *request, c source.Call) {
	set := func(name, value string) {
		if r.header.Get(name) == "" {
			r.header.Set(name, value)
		}
	}
	set("Accept", "application/json, text/*;q=0.9, */*;q=0.1")
	set("User-Agent", "fermata")
	if c.Idempotent && c.Key != "" {
		r.header.Set("Idempotency-Key", c.Key)
	}
	maps.Copy(r.header, s.headers)
}

// failed is a failed attempt of a call, and says whether and when the next attempt may be made.
type failed struct {
	source.CallError
	again bool          // whether an attempt may be of use
	wait  time.Duration // for which the endpoint asks, or a negative number
}

// Error returns the message.
func (f *failed) Error() string { return f.Message }

// once makes one attempt.
func (s *Source) once(ctx context.Context, o *operation, r *request, c source.Call) (json.RawMessage, error) {
	limit := c.MaxResult
	if limit <= 0 {
		limit = DefaultMaxResult
	}
	answer, err := s.client.Do(ctx, outgoing.Request{
		Method: o.Method, URL: r.url, Header: r.header, Body: r.body, Principal: c.Principal,
		Repeatable: c.Idempotent && s.retries > 0, MaxBytes: limit,
	})
	if err != nil {
		return nil, s.unanswered(err, c)
	}
	defer answer.Release()
	if answer.Status < 200 || answer.Status > 299 {
		return nil, s.refused(answer, c)
	}
	pointer, err := parsePointer(o.Result)
	if err != nil {
		return nil, err
	}
	value, err := result(answer, pointer)
	if err != nil { // The answer says that the call was made, but its result cannot be read.
		return nil, s.fail(err.Error(), !c.Idempotent, err)
	}
	return value, nil
}

// unanswered is the failure of a call that got no answer.
func (s *Source) unanswered(err error, c source.Call) error {
	var e *outgoing.Error
	if !errors.As(err, &e) {
		return s.fail("the call has failed", !c.Idempotent, err)
	}
	text := e.Error()
	if e.Reason == outgoing.Late {
		text += ": the limit is " + s.timeout.String()
	}
	f := s.fail(text, e.Sent && !c.Idempotent, err)
	f.again = e.Reason == outgoing.Unreachable || e.Reason == outgoing.Broken
	return f
}

// refused is the failure of a call that was answered with another status than success.
func (s *Source) refused(a *outgoing.Answer, c source.Call) error {
	unknown := a.Status == http.StatusBadGateway || a.Status == http.StatusGatewayTimeout
	f := s.fail(s.statusText(a), unknown && !c.Idempotent, fmt.Errorf("status %d", a.Status))
	switch a.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		f.again = true
		f.wait = retryAfter(a.Header.Get("Retry-After"), time.Now())
	}
	return f
}

// fail returns a failure.
func (s *Source) fail(message string, unknown bool, err error) *failed {
	if unknown {
		message += "; whether the call took effect is unknown"
	}
	return &failed{CallError: source.CallError{Message: message, Unknown: unknown, Err: err}, wait: -1}
}

// again tells backoff whether and when to make the next attempt. There is none if it would begin after the
// deadline.
func again(ctx context.Context, err error) error {
	var f *failed
	if !errors.As(err, &f) || !f.again {
		return backoff.Permanent(err)
	}
	if f.wait < 0 {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= f.wait {
		return backoff.Permanent(err)
	}
	return errors.Join(err, &backoff.RetryAfterError{Duration: f.wait})
}

// retryAfter reads the header Retry-After, which has seconds or a date. It returns a negative number if the
// header is missing or not valid.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	if header != "" && strings.Trim(header, "0123456789") == "" { // more than anybody waits
		return time.Duration(1<<63 - 1)
	}
	return -1
}
