// Package auth finds out which principal a request comes from: by API keys, and by the tokens
// that LibreChat makes for its users.
package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"
)

var (
	// ErrKey means that the request has no valid key, and nothing that looks like a token.
	ErrKey = errors.New("auth: invalid or missing key")
	// ErrToken means that a token is not accepted.
	ErrToken = errors.New("auth: invalid token")
)

// A RefusedError tells why the credentials of a request are refused. It is an ErrKey or an ErrToken.
type RefusedError struct {
	// Err is ErrKey or ErrToken.
	Err error
	// Why is for the log: the client is not told what is wrong with its credentials. It may have
	// parts that the client chose.
	Why string
}

func (e *RefusedError) Error() string { return e.Err.Error() + ": " + e.Why }

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// A Principal is the sender of a request. Executions belong to its ID.
type Principal struct {
	// ID is the name of the client's key, or is made of tenant and user.
	ID string
	// Tenant and User come from a token. They are empty with a key.
	Tenant, User string
	// Operator is true if the key is an operator's, who may look at everything and start nothing.
	Operator bool
	// Expires is when its token expires; zero with a key.
	Expires time.Time
}

// A Key lets a client in. Keys of the same name are the same principal.
type Key struct {
	// Name is the principal. It is logged.
	Name string
	// Key is the secret.
	Key string
	// Operator is true for the key of an operator.
	Operator bool
}

// An Authenticator finds the principals of requests. It is safe for concurrent use.
type Authenticator struct {
	keys   []keyHash
	tokens *JWT
}

// A keyHash is a key in the form in which it is compared: hashes have one length, so that
// the time of a comparison tells nothing about the key.
type keyHash struct {
	principal Principal
	hash      [sha256.Size]byte
}

// New returns an Authenticator that accepts keys, and tokens unless tokens is nil.
func New(keys []Key, tokens *JWT) *Authenticator {
	a := &Authenticator{tokens: tokens}
	for _, k := range keys {
		// An empty key would let in every client that presents none.
		if k.Key != "" {
			a.keys = append(a.keys, keyHash{Principal{ID: k.Name, Operator: k.Operator}, sha256.Sum256([]byte(k.Key))})
		}
	}
	return a
}

// HasCredentials reports whether a request has credentials of any kind.
func HasCredentials(header http.Header) bool {
	return header.Get("X-API-Key") != "" || header.Get("Authorization") != ""
}

// Authenticate returns the principal of a request, or a RefusedError. Proxies add headers, so a
// wrong key in one header does not spoil a good one in the other.
func (a *Authenticator) Authenticate(header http.Header) (Principal, error) {
	if who, ok := a.principalOf(header.Get("X-API-Key")); ok {
		return who, nil
	}
	scheme, credentials, _ := strings.Cut(header.Get("Authorization"), " ")
	credentials = strings.TrimSpace(credentials)
	scheme = strings.ToLower(scheme)
	var who Principal
	var ok bool
	switch scheme {
	case "bearer", "apikey":
		who, ok = a.principalOf(credentials)
	case "basic":
		who, ok = a.principalOf(basicKey(credentials))
	}
	if ok {
		return who, nil
	}
	switch {
	case !HasCredentials(header):
		return Principal{}, &RefusedError{ErrKey, "the request has no credentials"}
	case scheme != "bearer" || !looksLikeToken(credentials):
		return Principal{}, &RefusedError{ErrKey, "the key is not one of this server"}
	case a.tokens == nil:
		return Principal{}, &RefusedError{ErrKey, "the credentials look like a token, and this server accepts none: it has no keys for tokens"}
	}
	who, err := a.tokens.verify(credentials)
	if err != nil {
		return Principal{}, &RefusedError{ErrToken, err.Error()}
	}
	return who, nil
}

// basicKey returns the key in Basic credentials: clients with a key in their URL send it
// as the name of the user, or as the password of a user without a name.
func basicKey(credentials string) string {
	decoded, err := base64.StdEncoding.DecodeString(credentials)
	if err != nil {
		return ""
	}
	user, password, _ := strings.Cut(string(decoded), ":")
	if user != "" {
		return user
	}
	return password
}

// principalOf returns the principal of a key. It compares with every key, even after a match, so
// that its time tells nothing.
func (a *Authenticator) principalOf(key string) (who Principal, ok bool) {
	presented := sha256.Sum256([]byte(key))
	for _, k := range a.keys {
		if subtle.ConstantTimeCompare(presented[:], k.hash[:]) == 1 {
			who, ok = k.principal, true
		}
	}
	return who, ok
}
