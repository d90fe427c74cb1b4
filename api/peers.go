package api

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"fermata/continuation"
	"fermata/engine"
)

const (
	// Where servers that share a store hand requests over. The paths may not change
	// while servers of different versions run side by side.
	peerResumePath = "/internal/resume"
	peerCancelPath = "/internal/cancel"
	// peerSignature carries the time in Unix milliseconds, a dot, and the hex
	// HMAC-SHA256 over time, path and body.
	peerSignature = "X-Fermata-Signature"
	// peerSkew is how far the clocks of two servers may differ, and how long a
	// signature is good. A repeated request has no effect of its own.
	peerSkew = time.Minute
	// peerDialTimeout bounds the connection to a server, which is near or dead.
	peerDialTimeout = 2 * time.Second
)

// A PeerKey proves to a server that a request comes from another one of its group.
// The first key signs, all verify.
type PeerKey struct{ keys [][]byte }

// NewPeerKey derives the keys from the secrets that the servers share.
func NewPeerKey(secrets [][]byte) (PeerKey, error) {
	var k PeerKey
	for _, secret := range secrets {
		key, err := hkdf.Key(sha256.New, secret, nil, "fermata peers", sha256.Size)
		if err != nil {
			return PeerKey{}, fmt.Errorf("derive peer key: %w", err)
		}
		k.keys = append(k.keys, key)
	}
	return k, nil
}

// Group names the servers that share the first secret and a store. It tells nothing
// of the secret.
func (k PeerKey) Group(store string) string {
	return hex.EncodeToString(peerMAC(k.keys[0], "", "group", []byte(store))[:8])
}

func peerMAC(key []byte, at, path string, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(at + "." + path + "."))
	h.Write(body)
	return h.Sum(nil)
}

func (k PeerKey) sign(now time.Time, path string, body []byte) string {
	at := strconv.FormatInt(now.UnixMilli(), 10)
	return at + "." + hex.EncodeToString(peerMAC(k.keys[0], at, path, body))
}

func (k PeerKey) verify(signature string, now time.Time, path string, body []byte) bool {
	at, mac, _ := strings.Cut(signature, ".")
	millis, err := strconv.ParseInt(at, 10, 64)
	if err != nil || now.Sub(time.UnixMilli(millis)).Abs() > peerSkew {
		return false
	}
	given, err := hex.DecodeString(mac)
	return err == nil && slices.ContainsFunc(k.keys, func(key []byte) bool {
		return hmac.Equal(given, peerMAC(key, at, path, body))
	})
}

// A peerAnswer is what a server answers another one: an outcome, what became of a
// Cancel, or an error.
type peerAnswer struct {
	Outcome    *engine.Outcome   `json:"outcome,omitempty"`
	Cancelling engine.Cancelling `json:"cancelling,omitempty"`
	// Error is a name from peerErrors, CallID the id of a ResultError, Size and Limit
	// those of a ResultsError.
	Error  string `json:"error,omitempty"`
	CallID string `json:"call_id,omitempty"`
	Size   int64  `json:"size,omitempty"`
	Limit  int64  `json:"limit,omitempty"`
}

// peerErrors name the errors that mean the same on both sides.
var peerErrors = map[string]error{
	"token":          continuation.ErrToken,
	"token_expired":  continuation.ErrTokenExpired,
	"expired":        engine.ErrExpired,
	"forbidden":      engine.ErrForbidden,
	"in_flight":      engine.ErrInFlight,
	"request_in_use": engine.ErrRequestInUse,
	"closing":        engine.ErrClosing,
	"unavailable":    continuation.ErrUnavailable,
	"owner_away":     engine.ErrOwnerAway,
}

// err is the error that a answers with, if it is one that is known.
func (a peerAnswer) err() error {
	switch {
	case a.CallID != "":
		return &engine.ResultError{CallID: a.CallID}
	case a.Limit != 0:
		return &engine.ResultsError{Size: a.Size, Limit: a.Limit}
	}
	return peerErrors[a.Error]
}

// refusal is the answer that says err, if the other side knows it.
func refusal(err error) (peerAnswer, bool) {
	if wrong, ok := errors.AsType[*engine.ResultError](err); ok {
		return peerAnswer{CallID: wrong.CallID}, true
	}
	if large, ok := errors.AsType[*engine.ResultsError](err); ok {
		return peerAnswer{Size: large.Size, Limit: large.Limit}, true
	}
	for name, known := range peerErrors {
		if errors.Is(err, known) {
			return peerAnswer{Error: name}, true
		}
	}
	return peerAnswer{}, false
}

// encodePeer is json.Marshal without escapes of HTML: inputs of calls keep their
// bytes, and a body does not grow.
func encodePeer(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode for another server: %w", err)
	}
	return b.Bytes(), nil
}

// Peers hands requests over to other servers. It is an engine.Peers.
type Peers struct {
	key    PeerKey
	client *http.Client
}

// NewPeers returns a Peers that signs with key.
func NewPeers(key PeerKey) *Peers {
	dialer := &net.Dialer{Timeout: peerDialTimeout}
	return &Peers{key: key, client: &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute},
		// A run may take its whole budget.
		Timeout: MaxTimeout + AnswerTimeout,
	}}
}

// Resume has the server at address handle r.
func (p *Peers) Resume(ctx context.Context, address string, r engine.Resume) (engine.Outcome, error) {
	answer, err := p.ask(ctx, address, peerResumePath, r)
	if err != nil {
		return engine.Outcome{}, err
	}
	if answer.Outcome == nil {
		return engine.Outcome{}, fmt.Errorf("%w: it gave no outcome", engine.ErrOwnerAway)
	}
	return *answer.Outcome, nil
}

// Cancel has the server at address do what it can about c.
func (p *Peers) Cancel(ctx context.Context, address string, c engine.Cancel) (engine.Cancelling, error) {
	answer, err := p.ask(ctx, address, peerCancelPath, c)
	return answer.Cancelling, err
}

// ask sends a request to another server.
func (p *Peers) ask(ctx context.Context, address, path string, v any) (peerAnswer, error) {
	body, err := encodePeer(v)
	if err != nil {
		return peerAnswer{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address+path, bytes.NewReader(body))
	if err != nil {
		return peerAnswer{}, fmt.Errorf("hand over to %s: %w", address, err)
	}
	request.Header.Set(peerSignature, p.key.sign(time.Now(), path, body))
	response, err := p.client.Do(request)
	if err != nil {
		if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
			return peerAnswer{}, fmt.Errorf("%w: %w", engine.ErrUnreachable, err)
		}
		// It may have the request. Asked again it gives the answer that the first
		// one led to.
		return peerAnswer{}, fmt.Errorf("%w: %w", engine.ErrOwnerAway, err)
	}
	defer func() { _ = response.Body.Close() }()
	var answer peerAnswer
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return peerAnswer{}, fmt.Errorf("%w: %w", engine.ErrOwnerAway, err)
	}
	if err := answer.err(); err != nil {
		return peerAnswer{}, err
	}
	if response.StatusCode != http.StatusOK {
		// Such as 401: its secret is another one, or its clock.
		return peerAnswer{}, fmt.Errorf("%w: %s answers %s: %q", engine.ErrOwnerAway, address, response.Status, answer.Error)
	}
	return answer, nil
}

// peerResume handles a continuation that another server has handed over.
func (s *server) peerResume(c echo.Context) error {
	var r engine.Resume
	if err := s.readPeer(c, peerResumePath, &r); err != nil {
		return err
	}
	r.HandedOver = true
	outcome, err := s.executions.Resume(c.Request().Context(), r)
	return answerPeer(c, peerAnswer{Outcome: &outcome}, err)
}

// peerCancel handles a request to cancel that another server passes on.
func (s *server) peerCancel(c echo.Context) error {
	var r engine.Cancel
	if err := s.readPeer(c, peerCancelPath, &r); err != nil {
		return err
	}
	r.HandedOver = true
	state, err := s.executions.Cancel(c.Request().Context(), r)
	return answerPeer(c, peerAnswer{Cancelling: state}, err)
}

// readPeer reads a request of another server into v.
func (s *server) readPeer(c echo.Context, path string, v any) error {
	// Its other members take less room than what the limit leaves for white space.
	body, err := io.ReadAll(io.LimitReader(c.Request().Body, 2*s.options.Limits.Body))
	if err != nil {
		return errBodyIncomplete
	}
	if !s.options.PeerKey.verify(c.Request().Header.Get(peerSignature), time.Now(), path, body) {
		return errUnauthorized
	}
	if err := json.Unmarshal(body, v); err != nil {
		return errNotJSON
	}
	return nil
}

func answerPeer(c echo.Context, answer peerAnswer, err error) error {
	status := http.StatusOK
	if err != nil {
		c.Set(causeKey, err)
		refused, known := refusal(err)
		if !known {
			return err
		}
		answer, status = refused, http.StatusConflict
	}
	body, err := encodePeer(answer)
	if err != nil {
		return err
	}
	return write(c, status, body)
}
