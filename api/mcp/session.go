package mcp

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/api"
)

const (
	// maxSession is the maximum length of the id of a session, in bytes.
	maxSession = 128
	// asksPrefix begins the ids of sessions whose client can ask a person, and mutePrefix all others.
	asksPrefix, mutePrefix = "asks.", "mute."
)

// errNoSession refuses a session id that this server has not given to the principal.
var errNoSession = &api.Error{Status: 404, Text: "There is no such session (Mcp-Session-Id): begin a new one with initialize"}

// Key signs the ids of the sessions that clients of older versions of the protocol have. The id contains
// everything about its session, so that no server keeps sessions and every server of a group accepts the id.
// The id gives no rights: it belongs to one principal, whose credentials each request must show. Ids are
// signed with the first secret, and verified with each of them.
type Key struct{ keys [][]byte }

// NewKey derives a Key from the secrets that the servers of a group share.
func NewKey(secrets [][]byte) (Key, error) {
	var k Key
	for _, secret := range secrets {
		key, err := hkdf.Key(sha256.New, secret, nil, "fermata mcp sessions", sha256.Size)
		if err != nil {
			return Key{}, fmt.Errorf("derive the key of sessions: %w", err)
		}
		k.keys = append(k.keys, key)
	}
	return k, nil
}

// session returns the id of a new session of a principal.
func (k Key) session(principal string, asks bool) string {
	id := mutePrefix + rand.Text()
	if asks {
		id = asksPrefix + rand.Text()
	}
	return id + "." + signature(k.keys[0], principal, id)
}

// check returns whether the client of a session can ask a person, or an error if the session is not one
// of the principal's.
func (k Key) check(principal, session string) (asks bool, err error) {
	at := strings.LastIndexByte(session, '.')
	if at < 0 || len(session) > maxSession {
		return false, errNoSession
	}
	id, signed := session[:at], []byte(session[at+1:])
	if !slices.ContainsFunc(k.keys, func(key []byte) bool { return hmac.Equal(signed, []byte(signature(key, principal, id))) }) {
		return false, errNoSession
	}
	return strings.HasPrefix(id, asksPrefix), nil
}

// signature returns the last part of the id of a session.
func signature(key []byte, principal, id string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "\n" + principal))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// An elicitation is what a client declares about its ability to ask a person.
type elicitation struct {
	Form jsontext.Value `json:"form"`
	URL  jsontext.Value `json:"url"`
}

// forms reports whether the client can show forms. A client that declares an empty elicitation can.
func (e *elicitation) forms() bool { return e != nil && (e.Form != nil || e.URL == nil) }
