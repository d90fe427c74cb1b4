package auth

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
)

// The signature algorithms of tokens.
const (
	EdDSA = "EdDSA"
	RS256 = "RS256"
	HS256 = "HS256"
)

const (
	// tokenSkew is how far the clock of the issuer may differ from ours.
	tokenSkew = 30 * time.Second
	// maxTokenLife is the longest time from iat to exp.
	maxTokenLife = 300 * time.Second
	// maxTokenID is the longest jti, in characters.
	maxTokenID = 256
)

// compactToken is the form of a token. The base64 decoder ignores line ends, which would
// give one token several spellings.
var compactToken = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)

// JWTOptions say which tokens are accepted. The sources of keys may be combined; there
// must be at least one.
type JWTOptions struct {
	// Issuer and Audience are what iss and aud must name.
	Issuer, Audience string
	// Algorithms are the algorithms that keys may have.
	Algorithms []string
	// DefaultTenant is the tenant of a token that names none. If it is empty, such tokens
	// are refused.
	DefaultTenant string
	// JWKS is a JSON Web Key Set of public keys, each with its kid.
	JWKS string
	// KeysDir is a directory of public keys, PEM or JWK. The name of a file without its
	// extension is the kid. Changes are noticed while the server runs.
	KeysDir string
	// PublicKey is one public key, PEM or JWK, and KeyID its kid, which a JWK may contain
	// itself.
	PublicKey, KeyID string
	// HMACSecret is a secret for HS256, and HMACKeyID its kid.
	HMACSecret []byte
	HMACKeyID  string
	// Log is told what goes wrong with keys.
	Log *slog.Logger
}

// A JWT verifies the tokens that LibreChat makes for its users. It is safe for
// concurrent use.
type JWT struct {
	o      JWTOptions
	keys   *keyring
	parser *jwt.Parser
}

// NewJWT reads the keys. Mistakes in the keys or in the options are errors here, and not
// only at the first token.
func NewJWT(o JWTOptions) (*JWT, error) {
	if o.Issuer == "" || o.Audience == "" {
		return nil, errors.New("tokens need an issuer and an audience")
	}
	if len(o.Algorithms) == 0 {
		return nil, errors.New("there is no algorithm")
	}
	for _, a := range o.Algorithms {
		if !slices.Contains([]string{EdDSA, RS256, HS256}, a) {
			return nil, fmt.Errorf("algorithm %q is not one of %s, %s and %s", a, EdDSA, RS256, HS256)
		}
	}
	keys, err := newKeyring(o)
	if err != nil {
		return nil, err
	}
	return &JWT{o: o, keys: keys, parser: jwt.NewParser(
		jwt.WithValidMethods(o.Algorithms),
		jwt.WithStrictDecoding(),
		jwt.WithLeeway(tokenSkew),
		jwt.WithIssuedAt(),
		jwt.WithIssuer(o.Issuer),
		jwt.WithAudience(o.Audience),
	)}, nil
}

// looksLikeToken reports whether a credential that is not a key may be a token.
func looksLikeToken(credential string) bool { return strings.Count(credential, ".") == 2 }

// verify returns the principal of a token.
func (v *JWT) verify(token string) (Principal, error) {
	if !compactToken.MatchString(token) {
		return Principal{}, errors.New("malformed token")
	}
	// A map distinguishes what a struct does not: upper and lower case in names, and numbers
	// from numbers in quotes.
	claims := jwt.MapClaims{}
	if _, err := v.parser.ParseWithClaims(token, claims, v.key); err != nil {
		return Principal{}, err
	}
	if err := checkTimes(claims); err != nil {
		return Principal{}, err
	}
	if err := checkClaims(claims); err != nil {
		return Principal{}, err
	}
	tenant, user := v.o.DefaultTenant, text(claims, "sub")
	if claims["tenant_id"] != nil {
		tenant = text(claims, "tenant_id")
	}
	// Text that is not Unicode has been decoded to the replacement character, which would
	// make two users one.
	for _, name := range []string{tenant, user} {
		if name == "" || strings.ContainsRune(name, utf8.RuneError) {
			return Principal{}, errors.New("tenant or user is missing or malformed")
		}
	}
	who := tokenPrincipal(tenant, user)
	// checkTimes has made sure that it is there.
	if expires, err := claims.GetExpirationTime(); err == nil && expires != nil {
		who.Expires = expires.Time
	}
	return who, nil
}

// key returns the key for the library to verify a token with.
func (v *JWT) key(t *jwt.Token) (any, error) {
	if typ, given := t.Header["typ"]; given && typ != "JWT" {
		return nil, errors.New("typ is not JWT")
	}
	// crit lists extensions that the server must understand, and it understands none.
	if _, given := t.Header["crit"]; given {
		return nil, errors.New("crit is not supported")
	}
	kid, _ := t.Header["kid"].(string)
	if kid == "" {
		return nil, errors.New("kid is missing")
	}
	key, known := v.keys.find(kid)
	if !known {
		return nil, errors.New("kid is not known")
	}
	if key.algorithm != t.Method.Alg() {
		return nil, errors.New("alg is not that of the key")
	}
	return key.key, nil
}

// checkTimes checks what the library does not: that all times are present, and that the token is
// not valid for too long.
func checkTimes(claims jwt.MapClaims) error {
	times := map[string]float64{}
	for _, name := range []string{"iat", "nbf", "exp"} {
		t, ok := claims[name].(float64)
		// Beyond this limit the library's conversion to an integer overflows.
		if !ok || t < 0 || t > 1<<53 {
			return fmt.Errorf("%s is not a time", name)
		}
		times[name] = t
	}
	if life := times["exp"] - times["iat"]; life <= 0 || life > maxTokenLife.Seconds() {
		return errors.New("exp is not within the longest life after iat")
	}
	return nil
}

// checkClaims checks the claims that are LibreChat's own.
func checkClaims(claims jwt.MapClaims) error {
	if n := utf8.RuneCountInString(text(claims, "jti")); n < 1 || n > maxTokenID {
		return errors.New("jti is missing or too long")
	}
	if source := text(claims, "principal_source"); source != "librechat_jwt" && source != "openid_reuse" {
		return errors.New("principal_source is not known")
	}
	if text(claims, "auth_context_hash") == "" {
		return errors.New("auth_context_hash is missing")
	}
	for _, name := range []string{"plan_id", "role", "org_id", "service_id", "external_user_id", "chc_user_id", "code_worker_id"} {
		if _, ok := claims[name].(string); !ok && claims[name] != nil {
			return fmt.Errorf("%s is not a string", name)
		}
	}
	return nil
}

// text returns a claim that is a string, or "".
func text(claims jwt.MapClaims, name string) string {
	s, _ := claims[name].(string)
	return s
}
