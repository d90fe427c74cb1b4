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
	// peerPath is where servers that share a store hand requests over. It may not
	// change while servers of different versions run side by side.
	peerPath = "/internal/resume"
	// peerSignature carries the time in Unix milliseconds, a dot, and the hex
	// HMAC-SHA256 over time and body.
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

func peerMAC(key []byte, at string, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(at + "."))
	h.Write(body)
	return h.Sum(nil)
}

func (k PeerKey) sign(now time.Time, body []byte) string {
	at := strconv.FormatInt(now.UnixMilli(), 10)
	return at + "." + hex.EncodeToString(peerMAC(k.keys[0], at, body))
}

func (k PeerKey) verify(signature string, now time.Time, body []byte) bool {
	at, mac, _ := strings.Cut(signature, ".")
	millis, err := strconv.ParseInt(at, 10, 64)
	if err != nil || now.Sub(time.UnixMilli(millis)).Abs() > peerSkew {
		return false
	}
	given, err := hex.DecodeString(mac)
	return err == nil && slices.ContainsFunc(k.keys, func(key []byte) bool {
		return hmac.Equal(given, peerMAC(key, at, body))
	})
}

// A peerAnswer is what a server answers another one: an outcome or an error.
type peerAnswer struct {
	Outcome *engine.Outcome `json:"outcome,omitempty"`
	// Error is a name from peerErrors, CallID the id of a ResultError.
	Error  string `json:"error,omitempty"`
	CallID string `json:"call_id,omitempty"`
}

// peerErrors name the errors that mean the same on both sides.
var peerErrors = map[string]error{
	"token":       continuation.ErrToken,
	"expired":     engine.ErrExpired,
	"forbidden":   engine.ErrForbidden,
	"in_flight":   engine.ErrInFlight,
	"closing":     engine.ErrClosing,
	"unavailable": continuation.ErrUnavailable,
	"owner_away":  engine.ErrOwnerAway,
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
	body, err := json.Marshal(r)
	if err != nil {
		return engine.Outcome{}, fmt.Errorf("encode request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address+peerPath, bytes.NewReader(body))
	if err != nil {
		return engine.Outcome{}, fmt.Errorf("hand over to %s: %w", address, err)
	}
	request.Header.Set(peerSignature, p.key.sign(time.Now(), body))
	response, err := p.client.Do(request)
	if err != nil {
		if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
			return engine.Outcome{}, fmt.Errorf("%w: %w", engine.ErrUnreachable, err)
		}
		// It may have the request. The client asks again, and gets the answer that
		// the first one led to.
		return engine.Outcome{}, fmt.Errorf("%w: %w", engine.ErrOwnerAway, err)
	}
	defer func() { _ = response.Body.Close() }()
	var answer peerAnswer
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return engine.Outcome{}, fmt.Errorf("%w: %w", engine.ErrOwnerAway, err)
	}
	switch {
	case answer.Outcome != nil:
		return *answer.Outcome, nil
	case answer.CallID != "":
		return engine.Outcome{}, &engine.ResultError{CallID: answer.CallID}
	case peerErrors[answer.Error] != nil:
		return engine.Outcome{}, peerErrors[answer.Error]
	}
	return engine.Outcome{}, fmt.Errorf("server at %s answered with status %d, error %q", address, response.StatusCode, answer.Error)
}

// peer handles a request that another server has handed over.
func (s *server) peer(c echo.Context) error {
	body, err := io.ReadAll(io.LimitReader(c.Request().Body, 2*s.options.Limits.Body))
	if err != nil {
		return errBodyIncomplete
	}
	if !s.options.PeerKey.verify(c.Request().Header.Get(peerSignature), time.Now(), body) {
		return errUnauthorized
	}
	var r engine.Resume
	if err := json.Unmarshal(body, &r); err != nil {
		return errNotJSON
	}
	r.HandedOver = true
	outcome, err := s.executions.Resume(c.Request().Context(), r)
	if err == nil {
		return c.JSON(http.StatusOK, peerAnswer{Outcome: &outcome})
	}
	c.Set(causeKey, err)
	if wrong, ok := errors.AsType[*engine.ResultError](err); ok {
		return c.JSON(http.StatusConflict, peerAnswer{CallID: wrong.CallID})
	}
	for name, known := range peerErrors {
		if errors.Is(err, known) {
			return c.JSON(http.StatusConflict, peerAnswer{Error: name})
		}
	}
	return err
}
