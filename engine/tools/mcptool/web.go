package mcptool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/engine/tools/outgoing"
)

// web makes the HTTP requests of a session for the SDK's transport. It limits the size of answers, and removes
// everything but messages from streams of events. So events have no ids, and the SDK does not try to resume
// a stream.
type web struct {
	next    http.RoundTripper
	headers map[string]string
	guard   *guard
}

// connectWeb returns the connection of a principal to the URL of the options.
func connectWeb(ctx context.Context, o *Options, principal string, g *guard) (mcp.Connection, error) {
	t := &mcp.StreamableClientTransport{
		Endpoint: o.URL,
		HTTPClient: &http.Client{
			Transport:     &web{next: o.Transport(principal), headers: o.Headers, guard: g},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		MaxRetries:           -1,
		DisableStandaloneSSE: true,
		MaxEventSize:         MaxMessage + 1<<10,
	}
	return t.Connect(ctx)
}

// RoundTrip implements http.RoundTripper.
func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	x := exchangeOf(r.Context())
	r = r.Clone(r.Context())
	r.GetBody = nil // Without it net/http cannot send the request again.
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &watched{r.Body, x}
	}
	if v, ok := w.guard.version.Load().(string); ok && r.Header.Get("Mcp-Protocol-Version") == "" {
		r.Header.Set("Mcp-Protocol-Version", v)
	}
	for name, value := range w.headers {
		if r.Header.Get(name) == "" { // Headers that the SDK has set are kept.
			r.Header.Set(name, value)
		}
	}
	r.Header.Set("Accept-Encoding", "identity")
	resp, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		x.status.Store(int32(resp.StatusCode))
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "text/event-stream" && resp.StatusCode == http.StatusOK {
		resp.Body = &events{in: bufio.NewReader(resp.Body), body: resp.Body, guard: w.guard, x: x}
		return resp, nil
	}
	defer resp.Body.Close()
	body, err := outgoing.ReadAll(resp.Body, MaxMessage, resp.ContentLength, x.grow)
	if e, ok := errors.AsType[*outgoing.Error](err); ok && e.Reason == outgoing.Large {
		return nil, w.guard.fail(errLargeMessage)
	}
	if err != nil {
		return nil, err
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}

// A watched is a body that notes when it is read, which means that it is sent.
type watched struct {
	io.ReadCloser
	x *exchange
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	w.x.sent.Store(true)
	return w.ReadCloser.Read(p)
}

const (
	// maxStream is how many bytes a stream of events may have.
	maxStream = 4 * MaxMessage
	// leastLine is the minimum number of bytes for which a line counts, since short lines take time as well.
	leastLine = 64
)

// events is a stream of events from which everything but messages is removed.
type events struct {
	in    *bufio.Reader
	body  io.Closer
	guard *guard
	x     *exchange
	left  []byte // of the present message
	read  int
}

// Read implements io.Reader.
func (e *events) Read(p []byte) (int, error) {
	for len(e.left) == 0 {
		data, err := e.next()
		if len(data) > 0 {
			e.left = fmt.Appendf(e.left[:0], "data: %s\n\n", data)
			break
		}
		if err != nil {
			return 0, err
		}
	}
	n := copy(p, e.left)
	e.left = e.left[n:]
	return n, nil
}

// next reads an event and returns its data in one line. It returns nil if the event is not a message.
func (e *events) next() ([]byte, error) {
	var data []byte
	message, size := true, 0
	for {
		line, err := readLine(e.in, MaxMessage-size, func(line int) error {
			if !e.x.grow(int64(size + line)) {
				return &outgoing.Error{Reason: outgoing.Busy}
			}
			return nil
		})
		if err != nil && !errors.Is(err, io.EOF) {
			if errors.Is(err, errLargeMessage) {
				err = e.guard.fail(errLargeMessage)
			}
			return nil, err
		}
		size += len(line) + 1
		if e.read += max(len(line)+1, leastLine); e.read > maxStream {
			return nil, e.guard.fail(errLargeMessage)
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			message = len(value) == 0 || string(value) == "message"
		case "data":
			if len(data) > 0 {
				data = append(data, ' ')
			}
			data = append(data, bytes.ReplaceAll(value, []byte("\r"), []byte(" "))...)
		}
		if len(line) == 0 || err != nil {
			if !message {
				data = nil
			}
			return data, err
		}
	}
}

// Close implements io.Closer.
func (e *events) Close() error { return e.body.Close() }
