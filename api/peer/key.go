package peer

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// signatureHeader carries, with dots between them, the time in Unix milliseconds, the
	// hex SHA-256 of the body, and the hex HMAC-SHA256 over time, path and hash: a request
	// that is not signed is refused before its body is read. On an answer it carries the
	// HMAC over the request's signature, the status and the hash of the answer.
	signatureHeader = "X-Fermata-Signature"
	// skew is how far the clocks of two servers may differ, and how long a signature is valid. A
	// request that is repeated within this time has no further effect.
	skew = time.Minute
)

// A Key proves to a server that a request comes from another server of its group. The
// first secret signs; all secrets verify.
type Key struct{ keys [][]byte }

// NewKey derives a Key from the secrets that the servers share.
func NewKey(secrets [][]byte) (Key, error) {
	var k Key
	for _, secret := range secrets {
		key, err := hkdf.Key(sha256.New, secret, nil, "fermata peers", sha256.Size)
		if err != nil {
			return Key{}, fmt.Errorf("derive peer key: %w", err)
		}
		k.keys = append(k.keys, key)
	}
	return k, nil
}

// Group names the servers that share the first secret and a store. It reveals nothing
// about the secret.
func (k Key) Group(store string) string {
	// Containers are labelled with it, so it keeps the form that all MACs once had.
	return hex.EncodeToString(macOf(k.keys[0], ".group."+store)[:8])
}

// macOf returns the MAC of a message between servers. The first part is the kind of the message,
// and only the last part can contain a line feed, so that different parts never make the same
// text.
func macOf(key []byte, parts ...string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(strings.Join(parts, "\n")))
	return h.Sum(nil)
}

func (k Key) mac(parts ...string) string { return hex.EncodeToString(macOf(k.keys[0], parts...)) }

// authentic reports whether mac is the MAC of the parts under one of the keys.
func (k Key) authentic(mac string, parts ...string) bool {
	given, err := hex.DecodeString(mac)
	return err == nil && slices.ContainsFunc(k.keys, func(key []byte) bool {
		return hmac.Equal(given, macOf(key, parts...))
	})
}

// sign returns the signature of a request whose body has this hash.
func (k Key) sign(now time.Time, path, bodyHash string) string {
	at := strconv.FormatInt(now.UnixMilli(), 10)
	return at + "." + bodyHash + "." + k.mac("request", at, path, bodyHash)
}

// verify returns the hash that the body of a request must have, if its signature is valid.
func (k Key) verify(signature string, now time.Time, path string) (bodyHash string, ok bool) {
	at, rest, _ := strings.Cut(signature, ".")
	bodyHash, mac, _ := strings.Cut(rest, ".")
	millis, err := strconv.ParseInt(at, 10, 64)
	if err != nil || now.Sub(time.UnixMilli(millis)).Abs() > skew {
		return "", false
	}
	return bodyHash, k.authentic(mac, "request", at, path, bodyHash)
}

// signAnswer returns the signature of the answer to a request.
func (k Key) signAnswer(request string, status int, bodyHash string) string {
	return k.mac("answer", request, strconv.Itoa(status), bodyHash)
}

func (k Key) verifyAnswer(signature, request string, status int, bodyHash string) bool {
	return k.authentic(signature, "answer", request, strconv.Itoa(status), bodyHash)
}

func hexHash(body []byte) string {
	hash := sha256.Sum256(body)
	return hex.EncodeToString(hash[:])
}

// announce returns the announcement of a server's address.
func (k Key) announce(server, address string) string {
	return k.mac("announcement", server, address) + " " + address
}

// announced returns the address in an announcement, if this server has signed it.
func (k Key) announced(server, text string) (address string, ok bool) {
	mac, address, _ := strings.Cut(text, " ")
	return address, k.authentic(mac, "announcement", server, address)
}
