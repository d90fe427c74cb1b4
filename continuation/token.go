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
	// ErrToken means that a token is not one that this Signer would have made.
	ErrToken = errors.New("continuation: invalid token")
	// ErrTokenExpired means that a token is good but its time is over.
	ErrTokenExpired = errors.New("continuation: token has expired")
)

const (
	// minSecret is the least length of a secret: the output size of the hash, as
	// RFC 7518 section 3.2 asks for HS256.
	minSecret = sha256.Size
	// maxToken bounds the work that a stranger can cause with one token.
	maxToken = 8 << 10
	// tokenType is the typ header. It keeps our tokens and the JWTs that
	// authenticate clients apart, even if both were signed with one secret. It is
	// on the wire.
	tokenType = "fermata+jwt" //nolint:gosec // not a credential
)

// Claims are what a continuation token says: its bearer may go on with one round
// of one execution.
type Claims struct {
	// Execution is the id of the execution.
	Execution string
	// Session is the id of its session.
	Session string
	// Principal is who started it. It may be empty.
	Principal string
	// Round is the pause that the token continues, counted from 1.
	Round int
	// Expires is when the token ends. A token carries whole seconds, as other JWTs
	// do; the rest is rounded up, so that a token never ends before its pause.
	Expires time.Time
}

// tokenClaims are the claims as they are on the wire. Tokens outlive a server,
// so the names may not change. Principal is the registered claim sub, Expires is
// exp.
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

// NewSigner returns a Signer that signs with the first secret and accepts tokens
// of all of them. To change the secret, put the new one in front and take the old
// one away when its last token has expired. Where several servers share a secret,
// give the new one to all of them in second place before it comes first.
func NewSigner(secrets [][]byte) (*Signer, error) {
	if len(secrets) == 0 {
		return nil, errors.New("continuation: no token secret")
	}
	s := &Signer{
		byID: make(map[string]secret, len(secrets)),
		parser: jwt.NewParser(
			jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
			jwt.WithStrictDecoding(),
			// Verify asks for the claims itself, after the last look at the text.
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

// keyID is the kid header of tokens made with key. Eight bytes of a keyed hash
// name it without telling anything that a token's own signature does not.
func keyID(key []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("fermata token key id"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:8])
}

// Sign returns a token that says c.
func (s *Signer) Sign(c Claims) (string, error) {
	switch {
	case c.Execution == "" || c.Session == "" || c.Round < 1 || c.Expires.Unix() <= 0:
		return "", errors.New("continuation: incomplete token claims")
	case !utf8.ValidString(c.Execution) || !utf8.ValidString(c.Session) || !utf8.ValidString(c.Principal):
		// JSON would replace the bytes, and the token would claim something else.
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

// Verify returns what token claims, or ErrToken. If the token is good but its
// time was over at now, Verify returns the claims and ErrTokenExpired. There is
// no leeway: the expiry was set by a clock of ours.
func (s *Signer) Verify(token string, now time.Time) (Claims, error) {
	if len(token) > maxToken {
		return Claims{}, fmt.Errorf("%w: %d bytes", ErrToken, len(token))
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

// parse returns what a token of any server with our secrets claims.
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

	// The signature holds for the decoded bytes. Signing the claims again shows
	// that the text too, with its type and every other header, is the one that we
	// made: no token has a second spelling.
	again, err := sec.sign(&claims)
	if err != nil {
		return Claims{}, err
	}
	if subtle.ConstantTimeCompare([]byte(again), []byte(token)) != 1 {
		return Claims{}, errors.New("not our spelling")
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
