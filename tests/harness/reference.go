package harness

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"fermata/api/reference/referencetest"
)

// maxCompared is the size of the largest answer that is compared with the reference. Larger ones have
// the same members.
const maxCompared = 256 << 10

// maxMistakes is how many different mistakes are told.
const maxMistakes = 50

// compared compares the answers that tests get with the reference. It is the transport of
// http.DefaultClient.
type compared struct {
	http.RoundTripper
	reference *referencetest.Document

	mu    sync.Mutex
	wrong map[string]error // by what is told of it
}

// compareAnswers begins to compare all answers that http.DefaultClient gets from servers.
func compareAnswers() *compared {
	document, err := referencetest.Load()
	if err != nil {
		panic(err)
	}
	c := &compared{RoundTripper: http.DefaultTransport, reference: document, wrong: map[string]error{}}
	http.DefaultTransport = c
	return c
}

// RoundTrip implements http.RoundTripper.
func (c *compared) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	public := response.Header.Get("X-Request-Id") != "" && !strings.HasPrefix(r.URL.Path, "/internal/")
	// A balancer of a test passes on answers that are still compressed. They are compared where the
	// test's client reads them.
	plain := response.Header.Get("Content-Encoding") == ""
	if media == "application/json" && public && plain && r.Method != http.MethodHead {
		response.Body = &comparedBody{ReadCloser: response.Body, done: func(body []byte) {
			c.compare(r.Method, tidied(r.URL.Path), response.StatusCode, body)
		}}
	}
	return response, nil
}

// CloseIdleConnections lets http.DefaultClient close the connections of the transport below.
func (c *compared) CloseIdleConnections() {
	if t, ok := c.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// slashes matches what the server takes for one slash, or at the end of a path for none.
var slashes = regexp.MustCompile(`//+`)

func tidied(path string) string {
	if path = slashes.ReplaceAllString(path, "/"); path != "/" {
		path = strings.TrimSuffix(path, "/")
	}
	return path
}

func (c *compared) compare(method, path string, status int, body []byte) {
	if status == http.StatusNotFound && string(bytes.TrimSpace(body)) == `{"error":"Not found"}` {
		return // This address has no such route: it is for the other servers of a group, or the route is off.
	}
	err := c.reference.Check(method, path, status, body)
	if err == nil {
		return
	}
	// The same mistake in another answer is told once.
	what, _, _ := strings.Cut(err.Error(), ". The answer was")
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) < maxMistakes {
		c.wrong[what] = err
	}
}

// mistakes returns what was wrong with answers.
func (c *compared) mistakes() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []error
	for _, err := range c.wrong {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// A comparedBody keeps what is read of an answer, until it is too large.
type comparedBody struct {
	io.ReadCloser
	kept  bytes.Buffer
	large bool
	done  func(body []byte)
}

func (b *comparedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.large = b.large || b.kept.Len()+n > maxCompared; !b.large {
		b.kept.Write(p[:n])
	}
	if errors.Is(err, io.EOF) && !b.large && b.done != nil {
		b.done(b.kept.Bytes())
		b.done = nil
	}
	return n, err
}
