package auth_test

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"maps"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"fermata/api/auth"
)

const hmacSecret = "a-secret-of-thirty-two-bytes-or-more"

// issuer holds the keys that sign the tokens of the tests.
var issuer = sync.OnceValue(func() (k struct {
	ed    ed25519.PrivateKey
	other ed25519.PrivateKey
	rsa   *rsa.PrivateKey
},
) {
	// The processes of the fuzzer have to accept each other's tokens.
	k.ed = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	k.other = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	var err error
	if k.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		panic(err)
	}
	return k
})

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func edJWK(key ed25519.PrivateKey, members string) string {
	return `{"kty":"OKP","crv":"Ed25519","x":"` + b64(key.Public().(ed25519.PublicKey)) + `"` + members + `}`
}

func rsaJWK(key *rsa.PrivateKey, members string) string {
	return `{"kty":"RSA","n":"` + b64(key.N.Bytes()) + `","e":"` + b64(big.NewInt(int64(key.E)).Bytes()) + `"` + members + `}`
}

func publicPEM(t testing.TB, key crypto.Signer) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// jwtOptions accept tokens of the key "ed", of the key "rsa" and of the secret "hmac".
func jwtOptions() auth.JWTOptions {
	k := issuer()
	return auth.JWTOptions{
		Issuer: "librechat", Audience: "codeapi", DefaultTenant: "legacy",
		Algorithms: []string{auth.EdDSA, auth.RS256, auth.HS256},
		JWKS:       `{"keys":[` + edJWK(k.ed, `,"kid":"ed","alg":"EdDSA"`) + `,` + rsaJWK(k.rsa, `,"kid":"rsa","use":"sig"`) + `]}`,
		HMACSecret: []byte(hmacSecret), HMACKeyID: "hmac",
		Log: slog.New(slog.DiscardHandler),
	}
}

func newJWT(t testing.TB, o auth.JWTOptions) *auth.JWT {
	t.Helper()
	v, err := auth.NewJWT(o)
	if err != nil {
		t.Fatalf("NewJWT = %v", err)
	}
	return v
}

// claims returns the claims of LibreChat's tokens, with changes; nil removes a claim.
func claims(change map[string]any) jwt.MapClaims {
	now := time.Now().Unix()
	c := jwt.MapClaims{
		"iss": "librechat", "aud": "codeapi", "sub": "ada", "jti": "6f1c", "iat": now, "nbf": now, "exp": now + 300,
		"tenant_id": "acme", "principal_source": "librechat_jwt", "auth_context_hash": "abcdef", "role": "USER",
	}
	maps.Copy(c, change)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// sign signs claims with the key "ed". The header has changes; nil removes a member.
func sign(t testing.TB, header map[string]any, c jwt.Claims) string {
	t.Helper()
	return signWith(t, jwt.SigningMethodEdDSA, issuer().ed, header, c)
}

func signWith(t testing.TB, method jwt.SigningMethod, key any, header map[string]any, c jwt.Claims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, c)
	token.Header["kid"] = "ed"
	maps.Copy(token.Header, header)
	maps.DeleteFunc(token.Header, func(_ string, v any) bool { return v == nil })
	signed, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// ask authenticates a bearer credential and returns its principal, or "" for a bad token.
func ask(t *testing.T, tokens *auth.JWT, credential string) string {
	t.Helper()
	who, err := auth.New(nil, tokens).Authenticate(http.Header{"Authorization": {"Bearer " + credential}})
	switch {
	case err == nil && who.ID != "":
		return who.ID
	case !errors.Is(err, auth.ErrToken):
		t.Errorf("Authenticate = %+v, %v, want a principal or ErrToken", who, err)
	}
	return ""
}

func TestTokenHeader(t *testing.T) {
	k := issuer()
	v := newJWT(t, jwtOptions())
	with := func(name string, value any) map[string]any { return map[string]any{name: value} }
	secret := []byte(hmacSecret)
	for _, c := range []struct {
		name, token string
		good        bool
	}{
		{"EdDSA", sign(t, nil, claims(nil)), true},
		{"RS256", signWith(t, jwt.SigningMethodRS256, k.rsa, with("kid", "rsa"), claims(nil)), true},
		{"HS256", signWith(t, jwt.SigningMethodHS256, secret, with("kid", "hmac"), claims(nil)), true},
		{"without typ", sign(t, with("typ", nil), claims(nil)), true},
		{"with an unknown member", sign(t, with("x5t", "abc"), claims(nil)), true},

		{"another typ", sign(t, with("typ", "at+jwt"), claims(nil)), false},
		{"typ in small letters", sign(t, with("typ", "jwt"), claims(nil)), false},
		{"typ no string", sign(t, with("typ", []string{"JWT"}), claims(nil)), false},
		{"typ null", setHeader(t, `{"alg":"EdDSA","kid":"ed","typ":null}`), false},
		{"crit", sign(t, with("crit", []string{"exp"}), claims(nil)), false},
		{"no kid", sign(t, with("kid", nil), claims(nil)), false},
		{"empty kid", sign(t, with("kid", ""), claims(nil)), false},
		{"kid no string", sign(t, with("kid", 1), claims(nil)), false},
		{"unknown kid", sign(t, with("kid", "other"), claims(nil)), false},
		{"kid of another key", sign(t, with("kid", "rsa"), claims(nil)), false},
		{"another key", signWith(t, jwt.SigningMethodEdDSA, k.other, nil, claims(nil)), false},
		{"no alg", setHeader(t, `{"kid":"ed"}`), false},
		{"none", signWith(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, claims(nil)), false},
		{"none with a signature", signWith(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, claims(nil)) + "AAAA", false},
		{"nOnE", setHeader(t, `{"alg":"nOnE","kid":"ed"}`), false},
		{"alg in small letters", setHeader(t, `{"alg":"eddsa","kid":"ed"}`), false},
		{"RS512 with the key of RS256", signWith(t, jwt.SigningMethodRS512, k.rsa, with("kid", "rsa"), claims(nil)), false},
		{"PS256 with the key of RS256", signWith(t, jwt.SigningMethodPS256, k.rsa, with("kid", "rsa"), claims(nil)), false},
		{"HS512 with the secret of HS256", signWith(t, jwt.SigningMethodHS512, secret, with("kid", "hmac"), claims(nil)), false},
		{"HS256 with a public key", signWith(t, jwt.SigningMethodHS256, []byte(publicPEM(t, k.rsa)), with("kid", "rsa"), claims(nil)), false},
		{"HS256 with a public key's bytes", signWith(t, jwt.SigningMethodHS256, []byte(k.ed.Public().(ed25519.PublicKey)), nil, claims(nil)), false},
		{"key in the header", signWith(t, jwt.SigningMethodEdDSA, k.other, with("jwk", json.RawMessage(edJWK(k.other, ""))), claims(nil)), false},
		{"header no object", setHeader(t, `[]`), false},
		{"padding", sign(t, nil, claims(nil)) + "=", false},
		{"only dots", "..", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ask(t, v, c.token); (got != "") != c.good {
				t.Errorf("got principal %q, good should be %t", got, c.good)
			}
		})
	}
}

// setHeader returns a token with the header as it is given, signed with the key "ed".
func setHeader(t *testing.T, header string) string {
	t.Helper()
	body, err := json.Marshal(claims(nil))
	if err != nil {
		t.Fatal(err)
	}
	text := b64([]byte(header)) + "." + b64(body)
	return text + "." + b64(ed25519.Sign(issuer().ed, []byte(text)))
}

func TestTokenClaims(t *testing.T) {
	v := newJWT(t, jwtOptions())
	for _, c := range []struct {
		name   string
		change map[string]any
		want   string
	}{
		{"as LibreChat makes them", nil, "jwt:acme:ada"},
		{"audiences", map[string]any{"aud": []string{"account", "codeapi"}}, "jwt:acme:ada"},
		{"openid_reuse", map[string]any{"principal_source": "openid_reuse"}, "jwt:acme:ada"},
		{"unknown claims", map[string]any{"x": 1, "y": []any{}}, "jwt:acme:ada"},
		{"optional claims", map[string]any{"plan_id": "p", "org_id": "o", "service_id": "s", "external_user_id": "e", "chc_user_id": "c", "code_worker_id": "w"}, "jwt:acme:ada"},
		{"jti of 256 characters", map[string]any{"jti": strings.Repeat("ä", 256)}, "jwt:acme:ada"},
		{"no tenant", map[string]any{"tenant_id": nil}, "jwt:legacy:ada"},
		{"colons", map[string]any{"tenant_id": "a:b", "sub": "c:d"}, "jwt:a%3Ab:c%3Ad"},
		{"percent", map[string]any{"tenant_id": "a%3Ab", "sub": "c"}, "jwt:a%253Ab:c"},
		{"line end", map[string]any{"sub": "a\nb"}, "jwt:acme:a%0Ab"},

		{"another issuer", map[string]any{"iss": "librechat2"}, ""},
		{"no issuer", map[string]any{"iss": nil}, ""},
		{"issuer no string", map[string]any{"iss": []string{"librechat"}}, ""},
		{"issuer in capitals", map[string]any{"iss": nil, "ISS": "librechat"}, ""},
		{"another audience", map[string]any{"aud": "codeapi2"}, ""},
		{"other audiences", map[string]any{"aud": []string{"account"}}, ""},
		{"no audience", map[string]any{"aud": nil}, ""},
		{"empty audiences", map[string]any{"aud": []string{}}, ""},
		{"audience no string", map[string]any{"aud": []any{"codeapi", 1}}, ""},
		{"no sub", map[string]any{"sub": nil}, ""},
		{"empty sub", map[string]any{"sub": ""}, ""},
		{"sub no string", map[string]any{"sub": 7}, ""},
		{"sub in capitals", map[string]any{"sub": nil, "SUB": "ada"}, ""},
		{"sub no Unicode", map[string]any{"sub": json.RawMessage(`"a\ud800"`)}, ""},
		{"tenant no Unicode", map[string]any{"tenant_id": json.RawMessage(`"a\udc00"`)}, ""},
		{"no jti", map[string]any{"jti": nil}, ""},
		{"empty jti", map[string]any{"jti": ""}, ""},
		{"jti of 257 characters", map[string]any{"jti": strings.Repeat("x", 257)}, ""},
		{"jti no string", map[string]any{"jti": 1}, ""},
		{"no principal_source", map[string]any{"principal_source": nil}, ""},
		{"another principal_source", map[string]any{"principal_source": "api_key"}, ""},
		{"no auth_context_hash", map[string]any{"auth_context_hash": nil}, ""},
		{"empty auth_context_hash", map[string]any{"auth_context_hash": ""}, ""},
		{"auth_context_hash no string", map[string]any{"auth_context_hash": 1}, ""},
		{"empty tenant", map[string]any{"tenant_id": ""}, ""},
		{"tenant no string", map[string]any{"tenant_id": 1}, ""},
		{"plan_id no string", map[string]any{"plan_id": 123}, ""},
		{"role no string", map[string]any{"role": []string{"USER"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ask(t, v, sign(t, nil, claims(c.change))); got != c.want {
				t.Errorf("got principal %q, want %q", got, c.want)
			}
		})
	}

	t.Run("strict tenants", func(t *testing.T) {
		strict := jwtOptions()
		strict.DefaultTenant = ""
		v := newJWT(t, strict)
		if got := ask(t, v, sign(t, nil, claims(map[string]any{"tenant_id": nil}))); got != "" {
			t.Errorf("without a tenant: got principal %q, want none", got)
		}
		if got := ask(t, v, sign(t, nil, claims(nil))); got != "jwt:acme:ada" {
			t.Errorf("with a tenant: got principal %q, want jwt:acme:ada", got)
		}
	})
}

func TestTokenTimes(t *testing.T) {
	issuer()
	for _, c := range []struct {
		name string
		// Times are in seconds from now.
		iat, nbf, exp int64
		good          bool
	}{
		{"fresh", 0, 0, 300, true},
		{"longest life", -20, -20, 280, true},
		{"life too long", -20, -20, 281, false},
		{"expired within the skew", -329, -329, -29, true},
		{"expired", -330, -330, -30, false},
		{"issued ahead within the skew", 30, 0, 300, true},
		{"issued ahead", 31, 0, 300, false},
		{"not yet valid within the skew", 0, 30, 300, true},
		{"not yet valid", 0, 31, 300, false},
		{"no life", 10, 0, 10, false},
		{"negative life", 10, 0, 9, false},
		{"shortest life", 10, 0, 11, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Time stands still in this bubble.
			synctest.Test(t, func(t *testing.T) {
				v := newJWT(t, jwtOptions())
				now := time.Now().Unix()
				got := ask(t, v, sign(t, nil, claims(map[string]any{"iat": now + c.iat, "nbf": now + c.nbf, "exp": now + c.exp})))
				if (got != "") != c.good {
					t.Errorf("got principal %q, good should be %t", got, c.good)
				}
			})
		})
	}

	v := newJWT(t, jwtOptions())
	soon := time.Now().Unix() + 200
	for _, name := range []string{"iat", "nbf", "exp"} {
		for _, value := range []any{nil, "", "1700000000", soon * 1_000_000_000_000, -1, true, json.RawMessage("1e300"), json.RawMessage(`"` + time.Now().UTC().Format(time.RFC3339) + `"`), []any{soon}} {
			if got := ask(t, v, sign(t, nil, claims(map[string]any{name: value}))); got != "" {
				t.Errorf("%s is %v: got principal %q, want none", name, value, got)
			}
		}
	}
}

func FuzzToken(f *testing.F) {
	v := newJWT(f, jwtOptions())
	good := sign(f, nil, claims(nil))
	k := issuer()
	f.Add(good)
	f.Add(good + "\n")
	f.Add(signWith(f, jwt.SigningMethodHS256, []byte(publicPEM(f, k.rsa)), map[string]any{"kid": "rsa"}, claims(nil)))
	f.Add(signWith(f, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, claims(nil)))
	f.Add(strings.Replace(good, ".", ".e30", 1))
	f.Add("eyJhbGciOiJFZERTQSIsImtpZCI6ImVkIn0.e30.")
	f.Fuzz(func(t *testing.T, token string) {
		who, err := auth.Verify(v, token)
		if err != nil {
			return
		}
		// A signature with Ed25519 has one form only.
		text := token[:max(0, strings.LastIndexByte(token, '.'))]
		if signed := text + "." + b64(ed25519.Sign(k.ed, []byte(text))); token != signed {
			t.Fatalf("token %q passed as %+v, but was not signed", token, who)
		}
	})
}
