package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// A keyHash is a key as it is compared: hashes have one length, so that the time
// a comparison takes tells nothing of the key.
type keyHash struct {
	principal string
	hash      [sha256.Size]byte
}

func hashKeys(keys []Key) []keyHash {
	hashes := make([]keyHash, 0, len(keys))
	for _, k := range keys {
		// An empty key would let in whoever presents none.
		if k.Key != "" {
			hashes = append(hashes, keyHash{k.Name, sha256.Sum256([]byte(k.Key))})
		}
	}
	return hashes
}

// authenticated lets next see only requests with a principal, and refuses the
// others before their body is read.
func (s *server) authenticated(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		who, ok := s.authenticate(c.Request().Header)
		if !ok {
			return errUnauthorized
		}
		c.Set(principalKey, who)
		return next(c)
	}
}

// authenticate returns the principal of a request. Proxies add headers, so a key
// that is wrong in one header does not spoil a good one in the other.
func (s *server) authenticate(header http.Header) (who string, ok bool) {
	if s.options.Open {
		return "anonymous", true
	}
	if who, ok := s.principalOf(header.Get("X-API-Key")); ok {
		return who, true
	}
	scheme, credentials, _ := strings.Cut(header.Get("Authorization"), " ")
	credentials = strings.TrimSpace(credentials)
	switch strings.ToLower(scheme) {
	case "bearer", "apikey":
		return s.principalOf(credentials)
	case "basic":
		return s.principalOf(basicKey(credentials))
	}
	return "", false
}

// basicKey returns the key in Basic credentials: clients with a key in their URL
// send it as the user's name or as the password of a user without one.
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

// principalOf returns whose key it is. It looks at every key, whichever fits.
func (s *server) principalOf(key string) (who string, ok bool) {
	presented := sha256.Sum256([]byte(key))
	for _, k := range s.keys {
		if subtle.ConstantTimeCompare(presented[:], k.hash[:]) == 1 {
			who, ok = k.principal, true
		}
	}
	return who, ok
}
