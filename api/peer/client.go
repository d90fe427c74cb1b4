package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"fermata/api"
	"fermata/engine"
	"fermata/engine/core"
)

const (
	// dialTimeout bounds how long it takes to connect to a server, and the TLS handshake: a
	// server of the group is near, or it is dead.
	dialTimeout = 2 * time.Second
	// resumeTimeout bounds the time from a continuation to the first byte of its answer: the
	// longest run, and as long again as keeping the files of a program may take.
	resumeTimeout = api.MaxTimeout + time.Minute
	// cancelTimeout bounds a request to cancel, which does not wait for programs.
	cancelTimeout = 5 * time.Second
	// maxHeader is the size of the header of an answer.
	maxHeader = 64 << 10
)

// A Client hands requests over to other servers. It implements engine.Peers.
type Client struct {
	key       Key
	maxAnswer int64
	http      *http.Client
}

// NewClient returns a Client that signs with key and takes answers of at most maxAnswer
// bytes.
func NewClient(key Key, maxAnswer int64) *Client {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &Client{key: key, maxAnswer: maxAnswer, http: &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout, ResponseHeaderTimeout: resumeTimeout,
			// Answers of neighbours are not worth the time to compress them.
			DisableCompression:  true,
			MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxHeader,
		},
		Timeout: resumeTimeout + api.AnswerTimeout,
		// Servers of the group do not redirect.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Resume hands r over to the server at address.
func (c *Client) Resume(ctx context.Context, address string, r engine.Resume) (core.Outcome, error) {
	a, err := c.ask(ctx, address, resumePath, resumeRequestOf(r))
	if err != nil {
		return core.Outcome{}, err
	}
	if a.Outcome == nil {
		return core.Outcome{}, fmt.Errorf("%w: it gave no outcome", engine.ErrOwnerAway)
	}
	return a.Outcome.outcome(), nil
}

// Cancel hands r over to the server at address.
func (c *Client) Cancel(ctx context.Context, address string, r engine.Cancel) (engine.Cancelling, error) {
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	a, err := c.ask(ctx, address, cancelPath, cancelRequest{Principal: r.Principal, RequestID: r.RequestID, Execution: r.Execution})
	return a.Cancelling, err
}

// CancelSession asks the server at address to cancel the executions that it has of a session.
func (c *Client) CancelSession(ctx context.Context, address string, r engine.CancelSession) (map[string]engine.Cancelling, error) {
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	a, err := c.ask(ctx, address, cancelPath, cancelRequest{Principal: r.Principal, Session: r.Session})
	return a.Session, err
}

// Approve asks the server at address to decide on a call.
func (c *Client) Approve(ctx context.Context, address string, a engine.Approval) error {
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	_, err := c.ask(ctx, address, approvePath, approveRequest{a.Principal, a.Operator, a.Execution, a.Call, a.Approve, a.Reason})
	return err
}

// ask sends a request to another server.
func (c *Client) ask(ctx context.Context, address, path string, v any) (answer, error) {
	body, err := api.Encode(v)
	if err != nil {
		return answer{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, fmt.Errorf("hand over to %s: %w", address, err)
	}
	signature := c.key.sign(time.Now(), path, hexHash(body))
	request.Header.Set(signatureHeader, signature)
	response, err := c.http.Do(request)
	if err != nil {
		if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
			return answer{}, fmt.Errorf("%w: %w", engine.ErrUnreachable, err)
		}
		// The server may have received the request. A retry then gets the answer to the first
		// request.
		return answer{}, fmt.Errorf("%w: %w", engine.ErrOwnerAway, err)
	}
	defer func() { _ = response.Body.Close() }()
	a, err := c.read(response, signature)
	if err != nil {
		return answer{}, fmt.Errorf("%w: %s answers %d: %w", engine.ErrOwnerAway, address, response.StatusCode, err)
	}
	if err := a.err(); err != nil {
		return answer{}, err
	}
	if response.StatusCode != http.StatusOK {
		return answer{}, fmt.Errorf("%w: %s answers %d: %q", engine.ErrOwnerAway, address, response.StatusCode, a.Error)
	}
	return a, nil
}

// errUnsigned means that the answer does not prove to come from a server of the group. It may
// come from a server that refuses the request because its secret or its clock differs.
var errUnsigned = errors.New("the answer is not signed")

// read reads and verifies the answer to the request with this signature.
func (c *Client) read(response *http.Response, request string) (answer, error) {
	signature := response.Header.Get(signatureHeader)
	if signature == "" {
		return answer{}, errUnsigned
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, response.Body, c.maxAnswer))
	if err != nil {
		return answer{}, err
	}
	if !c.key.verifyAnswer(signature, request, response.StatusCode, hexHash(body)) {
		return answer{}, errUnsigned
	}
	var a answer
	return a, decode(body, &a)
}

// decode is the reverse of api.Encode.
func decode(body []byte, v any) error {
	return json.Unmarshal(body, v, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}
