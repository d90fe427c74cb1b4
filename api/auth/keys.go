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

// A Principal is who sends a request. Executions belong to its ID.
type Principal struct {
	// ID is the name of the client's key, or made of the other two.
	ID string
	// Tenant and User are those of a token. They are empty with a key.
	Tenant, User string
}

// authenticated lets next see only requests with a principal, and refuses the
// others before their body is read.
func (s *server) authenticated(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if s.options.Open {
			if err := s.sites.check(r); err != nil {
				return err
			}
		}
		who, err := s.authenticate(r.Header)
		if err != nil {
			if credentialed(r.Header) && !s.doorstep.wait(r.Context()) {
				c.Response().Header().Set(echo.HeaderConnection, "close")
			}
			return err
		}
		c.Set(principalKey, who)
		defer serve(r.Context(), who.ID)()
		return next(c)
	}
}

// authenticate returns the principal of a request. Proxies add headers, so a key
// that is wrong in one header does not spoil a good one in the other.
func (s *server) authenticate(header http.Header) (Principal, error) {
	if s.options.Open {
		return Principal{ID: "anonymous"}, nil
	}
	if who, ok := s.principalOf(header.Get("X-API-Key")); ok {
		return who, nil
	}
	scheme, credentials, _ := strings.Cut(header.Get("Authorization"), " ")
	credentials = strings.TrimSpace(credentials)
	scheme = strings.ToLower(scheme)
	var who Principal
	var ok bool
	switch scheme {
	case "bearer", "apikey":
		who, ok = s.principalOf(credentials)
	case "basic":
		who, ok = s.principalOf(basicKey(credentials))
	}
	if ok {
		return who, nil
	}
	if s.options.JWT == nil || scheme != "bearer" || !looksLikeToken(credentials) {
		return Principal{}, errUnauthorized
	}
	who, err := s.options.JWT.verify(credentials)
	if err != nil {
		// The client is not told what is wrong with its token.
		s.options.Log.Debug("refused a token", "err", err)
		return Principal{}, errBearer
	}
	return who, nil
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
func (s *server) principalOf(key string) (who Principal, ok bool) {
	presented := sha256.Sum256([]byte(key))
	for _, k := range s.keys {
		if subtle.ConstantTimeCompare(presented[:], k.hash[:]) == 1 {
			who, ok = Principal{ID: k.principal}, true
		}
	}
	return who, ok
}
