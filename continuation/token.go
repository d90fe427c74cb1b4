package continuation

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
)

// Errors of a Signer. They are compared with errors.Is.
var (
	// ErrToken means that this Signer would not have made the token.
	ErrToken = errors.New("continuation: invalid token")
	// ErrTokenExpired means that the token is genuine but has expired.
	ErrTokenExpired = errors.New("continuation: token has expired")
)

const (
	// minSecret is the minimum length of a secret: the output size of the hash, which
	// RFC 7518 section 3.2 requires for HS256.
	minSecret = sha256.Size
	// maxToken limits the work that anybody can cause with one token.
	maxToken = 8 << 10
	// tokenType is the typ header. It tells our tokens from the JWTs that authenticate
	// clients, even if both were signed with the same secret. It is on the wire.
	tokenType = "fermata+jwt" //nolint:gosec // not a credential
)

// Claims are the content of a continuation token: its bearer may continue one round of
// one execution.
type Claims struct {
	// Execution is the id of the execution.
	Execution string
	// Session is the id of the execution's session.
	Session string
	// Principal is the principal who has started the execution. It may be empty.
	Principal string
	// Round is the pause that the token continues, counted from 1.
	Round int
	// Expires is when the token expires. Like other JWTs a token carries whole seconds.
	// They are rounded up, so that no token expires before its pause does.
	Expires time.Time
}

// tokenClaims are the claims as they are on the wire, with Principal as the registered
// claim sub and Expires as exp. Tokens outlive the server that made them, so the names
// may not change.
type tokenClaims struct {
	Execution string `json:"exe"`
	Session   string `json:"ses"`
	Round     int    `json:"rnd"`
	jwt.RegisteredClaims
}

// A Signer makes and checks continuation tokens: JWTs signed with HMAC-SHA256.
// It is safe for concurrent use.
type Signer struct {
	first  secret
	byID   map[string]secret
	parser *jwt.Parser
}

type secret struct {
	id  string
	key []byte
}

// NewSigner returns a Signer that signs with the first secret and accepts tokens that
// were signed with any of them. To change the secret, put the new one in front of the
// old one, and remove the old one when its last token has expired. If several servers
// share the secret, first give all of them the new one in second place.
func NewSigner(secrets [][]byte) (*Signer, error) {
	if len(secrets) == 0 {
		return nil, errors.New("continuation: no token secret")
	}
	s := &Signer{
		byID: make(map[string]secret, len(secrets)),
		parser: jwt.NewParser(
			jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
			jwt.WithStrictDecoding(),
			// Verify checks the expiry itself, by the time that its caller gives.
			jwt.WithoutClaimsValidation(),
		),
	}
	for i, key := range secrets {
		if len(key) < minSecret {
			return nil, fmt.Errorf("continuation: token secret %d has %d bytes, want at least %d", i+1, len(key), minSecret)
		}
		sec := secret{id: keyID(key), key: append([]byte(nil), key...)}
		s.byID[sec.id] = sec
		if i == 0 {
			s.first = sec
		}
	}
	return s, nil
}

// keyID returns the kid header of tokens that are signed with key: eight bytes of a
// keyed hash, which reveal no more about the key than a token's signature does.
func keyID(key []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("fermata token key id"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:8])
}

// Sign returns a token with the claims c.
func (s *Signer) Sign(c Claims) (string, error) {
	switch {
	case c.Execution == "" || c.Session == "" || c.Round < 1 || c.Expires.Unix() <= 0:
		return "", errors.New("continuation: incomplete token claims")
	case !utf8.ValidString(c.Execution) || !utf8.ValidString(c.Session) || !utf8.ValidString(c.Principal):
		// JSON would replace the invalid bytes, and so change the claims.
		return "", errors.New("continuation: token claims are not UTF-8")
	}
	expires := c.Expires.Truncate(time.Second)
	if expires.Before(c.Expires) {
		expires = expires.Add(time.Second)
	}
	token, err := s.first.sign(&tokenClaims{
		Execution: c.Execution,
		Session:   c.Session,
		Round:     c.Round,
		RegisteredClaims: jwt.RegisteredClaims{
			Subject:   c.Principal,
			ExpiresAt: jwt.NewNumericDate(expires),
		},
	})
	if err != nil {
		return "", fmt.Errorf("continuation: sign token: %w", err)
	}
	if len(token) > maxToken {
		return "", fmt.Errorf("continuation: token of %d bytes, want at most %d", len(token), maxToken)
	}
	return token, nil
}

func (sec secret) sign(c *tokenClaims) (string, error) {
	token := jwt.Token{
		Header: map[string]any{"alg": jwt.SigningMethodHS256.Alg(), "kid": sec.id, "typ": tokenType},
		Claims: c,
		Method: jwt.SigningMethodHS256,
	}
	return token.SignedString(sec.key)
}

// Verify returns the claims of token, or ErrToken. If the token is genuine but expired
// at now, it returns the claims and ErrTokenExpired. There is no leeway for skewed
// clocks: a server of ours has set the expiry.
func (s *Signer) Verify(token string, now time.Time) (Claims, error) {
	if len(token) > maxToken {
		return Claims{}, fmt.Errorf("%w: %d bytes, want at most %d", ErrToken, len(token), maxToken)
	}
	c, err := s.parse(token)
	if err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrToken, err)
	}
	if !now.Before(c.Expires) {
		return c, ErrTokenExpired
	}
	return c, nil
}

// parse returns the claims of a token of any server with our secrets.
func (s *Signer) parse(token string) (Claims, error) {
	var claims tokenClaims
	var sec secret
	_, err := s.parser.ParseWithClaims(token, &claims, func(t *jwt.Token) (any, error) {
		id, _ := t.Header["kid"].(string)
		var known bool
		if sec, known = s.byID[id]; !known {
			return nil, errors.New("unknown key id")
		}
		return sec.key, nil
	})
	if err != nil {
		return Claims{}, err
	}

	// The signature covers the decoded bytes only. Signing the claims again shows that
	// the text itself, with its type and every other header, is the one that we would
	// make: no token has a second spelling.
	again, err := sec.sign(&claims)
	if err != nil {
		return Claims{}, err
	}
	if subtle.ConstantTimeCompare([]byte(again), []byte(token)) != 1 {
		return Claims{}, errors.New("not spelled as it was signed")
	}
	if claims.Execution == "" || claims.Session == "" || claims.Round < 1 || claims.ExpiresAt == nil {
		return Claims{}, errors.New("incomplete claims")
	}

	return Claims{
		Execution: claims.Execution,
		Session:   claims.Session,
		Principal: claims.Subject,
		Round:     claims.Round,
		Expires:   claims.ExpiresAt.Time,
	}, nil
}
