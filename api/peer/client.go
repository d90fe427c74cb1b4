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
	// peerSignature carries, with dots between them, the time in Unix milliseconds, the hex
	// SHA-256 of the body, and the hex HMAC-SHA256 over time, path and hash: whoever cannot
	// sign is refused before the body is read. On an answer it carries the HMAC over the
	// request's signature, the status and the hash of the answer.
	peerSignature = "X-Fermata-Signature"
	// peerSkew is how far the clocks of two servers may differ, and how long a
	// signature is good. A repeated request has no effect of its own.
	peerSkew = time.Minute
	// peerDialTimeout bounds the connection to a server, which is near or dead.
	peerDialTimeout = 2 * time.Second
	// peerResult and peerRest bound what a request that is handed over may have beyond the
	// body that the client sent: the names of the members of each result, and the rest.
	peerResult, peerRest = 128, 64 << 10
	// maxPeerCancel is the size of a request to cancel that is passed on.
	maxPeerCancel = 64 << 10
	// maxPeerHeader is the size of the header of an answer.
	maxPeerHeader = 64 << 10
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
	// Containers are labelled with it: it stays as it was when all MACs had this form.
	return hex.EncodeToString(peerMAC(k.keys[0], ".group."+store)[:8])
}

// peerMAC authenticates what servers tell each other. What is told comes first, and no
// part but the last has a line feed, so that no two texts are the same.
func peerMAC(key []byte, parts ...string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(strings.Join(parts, "\n")))
	return h.Sum(nil)
}

func (k PeerKey) mac(parts ...string) string { return hex.EncodeToString(peerMAC(k.keys[0], parts...)) }

// authentic reports whether mac is that of the parts under one of the keys.
func (k PeerKey) authentic(mac string, parts ...string) bool {
	given, err := hex.DecodeString(mac)
	return err == nil && slices.ContainsFunc(k.keys, func(key []byte) bool {
		return hmac.Equal(given, peerMAC(key, parts...))
	})
}

// sign returns the signature of a request whose body has this hash.
func (k PeerKey) sign(now time.Time, path, bodyHash string) string {
	at := strconv.FormatInt(now.UnixMilli(), 10)
	return at + "." + bodyHash + "." + k.mac("request", at, path, bodyHash)
}

// verify returns the hash that the body of a request must have.
func (k PeerKey) verify(signature string, now time.Time, path string) (bodyHash string, ok bool) {
	at, rest, _ := strings.Cut(signature, ".")
	bodyHash, mac, _ := strings.Cut(rest, ".")
	millis, err := strconv.ParseInt(at, 10, 64)
	if err != nil || now.Sub(time.UnixMilli(millis)).Abs() > peerSkew {
		return "", false
	}
	return bodyHash, k.authentic(mac, "request", at, path, bodyHash)
}

// signAnswer returns the signature of the answer to a request.
func (k PeerKey) signAnswer(request string, status int, bodyHash string) string {
	return k.mac("answer", request, strconv.Itoa(status), bodyHash)
}

func (k PeerKey) verifyAnswer(signature, request string, status int, bodyHash string) bool {
	return k.authentic(signature, "answer", request, strconv.Itoa(status), bodyHash)
}

func hexHash(body []byte) string {
	hash := sha256.Sum256(body)
	return hex.EncodeToString(hash[:])
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
	key       PeerKey
	maxAnswer int64
	client    *http.Client
}

// NewPeers returns a Peers that signs with key, and takes answers of maxAnswer bytes.
func NewPeers(key PeerKey, maxAnswer int64) *Peers {
	dialer := &net.Dialer{Timeout: peerDialTimeout}
	return &Peers{key: key, maxAnswer: maxAnswer, client: &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: maxPeerHeader,
		},
		// A run may take its whole budget.
		Timeout: MaxTimeout + AnswerTimeout,
		// A server of the group answers itself.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
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
	signature := p.key.sign(time.Now(), path, hexHash(body))
	request.Header.Set(peerSignature, signature)
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
	answer, err := p.read(response, signature)
	if err != nil {
		return peerAnswer{}, fmt.Errorf("%w: %s answers %d: %w", engine.ErrOwnerAway, address, response.StatusCode, err)
	}
	if err := answer.err(); err != nil {
		return peerAnswer{}, err
	}
	if response.StatusCode != http.StatusOK {
		return peerAnswer{}, fmt.Errorf("%w: %s answers %d: %q", engine.ErrOwnerAway, address, response.StatusCode, answer.Error)
	}
	return answer, nil
}

// errUnsigned is an answer that no server of the group has given to this request. It may
// be one all the same, that refuses the request: its secret is another one, or its clock.
var errUnsigned = errors.New("the answer is not signed")

// read reads the answer to the request with this signature.
func (p *Peers) read(response *http.Response, request string) (peerAnswer, error) {
	signature := response.Header.Get(peerSignature)
	if signature == "" {
		return peerAnswer{}, errUnsigned
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, response.Body, p.maxAnswer))
	if err != nil {
		return peerAnswer{}, err
	}
	if !p.key.verifyAnswer(signature, request, response.StatusCode, hexHash(body)) {
		return peerAnswer{}, errUnsigned
	}
	var answer peerAnswer
	if err := json.Unmarshal(body, &answer); err != nil {
		return peerAnswer{}, err
	}
	return answer, nil
}

// peerResume handles a continuation that another server has handed over.
func (s *server) peerResume(c echo.Context) error {
	var r engine.Resume
	limits := s.options.Limits
	done, err := s.readPeer(c, peerResumePath, limits.Body+int64(limits.Results)*peerResult+peerRest, &r)
	if err != nil {
		return err
	}
	defer done()
	r.HandedOver = true
	outcome, err := s.executions.Resume(c.Request().Context(), r)
	return s.answerPeer(c, peerAnswer{Outcome: &outcome}, err)
}

// peerCancel handles a request to cancel that another server passes on.
func (s *server) peerCancel(c echo.Context) error {
	var r engine.Cancel
	done, err := s.readPeer(c, peerCancelPath, maxPeerCancel, &r)
	if err != nil {
		return err
	}
	defer done()
	r.HandedOver = true
	state, err := s.executions.Cancel(c.Request().Context(), r)
	return s.answerPeer(c, peerAnswer{Cancelling: state}, err)
}

// peersPrincipal is whose the connections of other servers are. No key has this name.
const peersPrincipal = "\x00peers"

// readPeer reads a request of another server, of limit bytes at most, into v. The
// connection works for that server until the function that it returns is called.
func (s *server) readPeer(c echo.Context, path string, limit int64, v any) (done func(), err error) {
	r := c.Request()
	hash, ok := s.options.PeerKey.verify(r.Header.Get(peerSignature), time.Now(), path)
	if !ok {
		return nil, errUnauthorized
	}
	if r.ContentLength > limit {
		return nil, errBodyTooLarge
	}
	leave := serve(r.Context(), peersPrincipal)
	defer func() {
		if err != nil {
			leave()
		}
	}()
	// Other servers carry the bodies of all principals.
	body, err := s.readHeld(c, "", http.MaxBytesReader(c.Response(), r.Body, limit))
	if err != nil {
		return nil, err
	}
	if hexHash(body) != hash {
		return nil, errUnauthorized
	}
	if err := json.Unmarshal(body, v); err != nil {
		return nil, errNotJSON
	}
	return leave, nil
}

func (s *server) answerPeer(c echo.Context, answer peerAnswer, err error) error {
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
	signature := s.options.PeerKey.signAnswer(c.Request().Header.Get(peerSignature), status, hexHash(body))
	c.Response().Header().Set(peerSignature, signature)
	return write(c, status, body)
}
