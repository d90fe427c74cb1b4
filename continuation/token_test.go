package continuation_test

import (
	"bytes"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"fermata/continuation"
)

var (
	expiry = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	before = expiry.Add(-time.Minute)
)

func secret(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

func newSigner(tb testing.TB, secrets ...[]byte) *continuation.Signer {
	tb.Helper()
	s, err := continuation.NewSigner(secrets)
	if err != nil {
		tb.Fatalf("NewSigner = %v, want success", err)
	}
	return s
}

func claims() continuation.Claims {
	return continuation.Claims{
		Execution: "5d2e5e9b-0b7e-4b6c-9d4e-0a1b2c3d4e5f",
		Session:   "V1StGXR8_Z5jdHi6B-myT",
		Principal: "key:ops",
		Round:     3,
		Expires:   expiry,
	}
}

func sign(tb testing.TB, s *continuation.Signer, c continuation.Claims) string {
	tb.Helper()
	token, err := s.Sign(c)
	if err != nil {
		tb.Fatalf("Sign = %v, want success", err)
	}
	return token
}

func wantErrToken(t *testing.T, s *continuation.Signer, what, token string) {
	t.Helper()
	c, err := s.Verify(token, before)
	if !errors.Is(err, continuation.ErrToken) || errors.Is(err, continuation.ErrTokenExpired) {
		t.Errorf("Verify of %s = %v, want ErrToken", what, err)
	}
	if c != (continuation.Claims{}) {
		t.Errorf("Verify of %s returns %+v, want no claims", what, c)
	}
}

// segments returns the decoded header and claims of a token and its signature.
func segments(tb testing.TB, token string) (header, payload map[string]any, signature string) {
	tb.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		tb.Fatalf("token has %d segments, want 3", len(parts))
	}
	for i, into := range []*map[string]any{&header, &payload} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			tb.Fatalf("segment %d: %v", i, err)
		}
	}
	return header, payload, parts[2]
}

func encode(tb testing.TB, v any) string {
	tb.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// forge signs a header and a payload as the holder of key could.
func forge(tb testing.TB, key []byte, header, payload any) string {
	tb.Helper()
	text := encode(tb, header) + "." + encode(tb, payload)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// A Signer verifies its own tokens and those of other servers with the same secret.
func TestTokenRoundTrip(t *testing.T) {
	s := newSigner(t, secret(1))
	for name, c := range map[string]continuation.Claims{
		"plain":        claims(),
		"no principal": {Execution: "e", Session: "s", Round: 1, Expires: expiry},
		"odd text":     {Execution: "<&>\u2028", Session: "\x00\"\\", Principal: "名前", Round: 20, Expires: expiry},
	} {
		token := sign(t, s, c)
		for whose, by := range map[string]*continuation.Signer{"its own": s, "another's": newSigner(t, secret(1))} {
			got, err := by.Verify(token, before)
			got.Expires = got.Expires.UTC()
			if err != nil || got != c {
				t.Errorf("%s: Verify of %s = %+v, %v, want %+v", name, whose, got, err, c)
			}
		}
	}
}

func TestTokenExpiry(t *testing.T) {
	s := newSigner(t, secret(1))
	c := claims()
	c.Expires = expiry.Add(-time.Second + time.Millisecond) // rounded up to expiry
	token := sign(t, s, c)
	for now, want := range map[time.Time]error{
		c.Expires:                        nil,
		expiry.Add(-1):                   nil,
		expiry:                           continuation.ErrTokenExpired,
		expiry.Add(time.Hour):            continuation.ErrTokenExpired,
		expiry.In(time.FixedZone("", 1)): continuation.ErrTokenExpired,
	} {
		for whose, by := range map[string]*continuation.Signer{"its own": s, "another's": newSigner(t, secret(1))} {
			got, err := by.Verify(token, now)
			if !errors.Is(err, want) || errors.Is(err, continuation.ErrToken) {
				t.Errorf("Verify of %s at %v = %v, want %v", whose, now, err, want)
			}
			if got.Execution != c.Execution || got.Round != c.Round || !got.Expires.Equal(expiry) {
				t.Errorf("Verify of %s at %v returns %+v, want the claims", whose, now, got)
			}
		}
	}
	// An invalid token is reported as invalid, not as expired, at any time.
	if _, err := s.Verify(token[:len(token)-1], expiry.Add(time.Hour)); !errors.Is(err, continuation.ErrToken) {
		t.Errorf("Verify of a cut and expired token = %v, want ErrToken", err)
	}
}

func TestTokenAltered(t *testing.T) {
	s := newSigner(t, secret(1))
	token := sign(t, s, claims())
	header, payload, signature := segments(t, token)
	for name, value := range map[string]any{
		"exe": "another", "ses": "another", "sub": "another", "rnd": 4, "exp": expiry.Unix() + 1, "new": 1,
	} {
		altered := maps.Clone(payload)
		altered[name] = value
		wantErrToken(t, s, "a token with another "+name, encode(t, header)+"."+encode(t, altered)+"."+signature)
	}

	c := claims()
	c.Round++
	other := strings.Split(sign(t, s, c), ".")
	for i := 1; i < 3; i++ { // all tokens of one secret have the same header
		swapped := strings.Split(token, ".")
		swapped[i] = other[i]
		wantErrToken(t, s, fmt.Sprint("a token with segment ", i, " of another"), strings.Join(swapped, "."))
	}
	for i := range token {
		for _, b := range []byte{token[i] ^ 1, '.', '=', ' ', 'A', 0, 0xff} {
			if b == token[i] {
				continue
			}
			altered := []byte(token)
			altered[i] = b
			wantErrToken(t, s, fmt.Sprintf("a token with %q at %d", b, i), string(altered))
		}
		wantErrToken(t, s, fmt.Sprint("the first bytes of a token, ", i), token[:i])
		wantErrToken(t, s, fmt.Sprint("the last bytes of a token, ", i), token[i+1:])
	}
}

// These tokens carry a valid signature, made with the secret. Only the checks that
// follow the signature can refuse them.
func TestTokenOfAnotherForm(t *testing.T) {
	key := secret(1)
	s := newSigner(t, key)
	header, payload, _ := segments(t, sign(t, s, claims()))
	with := func(m map[string]any, name string, value any) map[string]any {
		out := maps.Clone(m)
		if out[name] = value; value == nil {
			delete(out, name)
		}
		return out
	}
	good := forge(t, key, header, json.RawMessage(`{"exe":"e","ses":"s","rnd":1,"sub":"p","exp":9999999999}`))
	if _, err := s.Verify(good, before); err != nil {
		t.Fatalf("Verify of a token forged in our form = %v, want success", err)
	}
	for name, token := range map[string]string{
		"no kid":        forge(t, key, with(header, "kid", nil), payload),
		"other kid":     forge(t, key, with(header, "kid", "AAAAAAAAAAA"), payload),
		"kid no string": forge(t, key, with(header, "kid", 1), payload),
		"no alg":        forge(t, key, with(header, "alg", nil), payload),
		"alg none":      forge(t, key, with(header, "alg", "none"), payload),
		"alg HS512":     forge(t, key, with(header, "alg", "HS512"), payload),
		"alg RS256":     forge(t, key, with(header, "alg", "RS256"), payload),
		"alg hs256":     forge(t, key, with(header, "alg", "hs256"), payload),
		"no typ":        forge(t, key, with(header, "typ", nil), payload),
		"typ JWT":       forge(t, key, with(header, "typ", "JWT"), payload),
		"crit":          forge(t, key, with(header, "crit", []string{"exp"}), payload),
		"jwk":           forge(t, key, with(header, "jwk", map[string]any{"kty": "oct"}), payload),
		"no execution":  forge(t, key, header, with(payload, "exe", nil)),
		"no session":    forge(t, key, header, with(payload, "ses", nil)),
		"no round":      forge(t, key, header, with(payload, "rnd", nil)),
		"round 0":       forge(t, key, header, with(payload, "rnd", 0)),
		"round 3.0":     forge(t, key, header, with(payload, "rnd", json.RawMessage("3.0"))),
		"no expiry":     forge(t, key, header, with(payload, "exp", nil)),
		"expiry text":   forge(t, key, header, with(payload, "exp", "never")),
		"a new claim":   forge(t, key, header, with(payload, "new", 1)),
		"null":          forge(t, key, header, nil),
		"other order":   forge(t, key, header, payload), // encoding/json sorts a map's keys

		// The rest have their claims in our order, so that their spelling is ours.
		"empty execution": forge(t, key, header, json.RawMessage(`{"exe":"","ses":"s","rnd":1,"sub":"p","exp":9999999999}`)),
		"empty session":   forge(t, key, header, json.RawMessage(`{"exe":"e","ses":"","rnd":1,"sub":"p","exp":9999999999}`)),
		"round zero":      forge(t, key, header, json.RawMessage(`{"exe":"e","ses":"s","rnd":0,"sub":"p","exp":9999999999}`)),
		"expiry left out": forge(t, key, header, json.RawMessage(`{"exe":"e","ses":"s","rnd":1,"sub":"p"}`)),
	} {
		wantErrToken(t, s, "a token with "+name, token)
	}
}

func TestTokenAlgorithms(t *testing.T) {
	key := secret(1)
	s := newSigner(t, key)
	header, payload, _ := segments(t, sign(t, s, claims()))
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		method jwt.SigningMethod
		key    any
	}{
		"none":  {jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType},
		"HS384": {jwt.SigningMethodHS384, key},
		"HS512": {jwt.SigningMethodHS512, key},
		"RS256": {jwt.SigningMethodRS256, crypto.PrivateKey(rsaKey)},
	} {
		token := jwt.NewWithClaims(c.method, jwt.MapClaims(payload))
		token.Header["kid"], token.Header["typ"] = header["kid"], header["typ"]
		text, err := token.SignedString(c.key)
		if err != nil {
			t.Fatal(err)
		}
		wantErrToken(t, s, name, text)
	}
}

func TestTokenSpelling(t *testing.T) {
	s := newSigner(t, secret(1))
	token := sign(t, s, claims())
	parts := strings.Split(token, ".")

	spellings := map[string]string{
		"empty":          "",
		"dots":           "..",
		"space before":   " " + token,
		"space after":    token + " ",
		"line break":     token + "\n",
		"break inside":   parts[0] + "." + parts[1][:9] + "\r\n" + parts[1][9:] + "." + parts[2],
		"bearer":         "Bearer " + token,
		"dot after":      token + ".",
		"two signatures": token + "." + parts[2],
		"very long":      token + strings.Repeat("A", 1<<20),
		"standard":       strings.NewReplacer("-", "+", "_", "/").Replace(token) + "+",
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for i, part := range parts {
		padded := append([]string(nil), parts...)
		padded[i] += strings.Repeat("=", (4-len(part)%4)%4)
		if padded[i] != part {
			spellings[fmt.Sprint("padding of segment ", i)] = strings.Join(padded, ".")
		}
		// The last letter of a segment may have bits that encode nothing.
		last := strings.IndexByte(alphabet, part[len(part)-1])
		if len(part)%4 != 0 {
			bits := append([]string(nil), parts...)
			bits[i] = part[:len(part)-1] + string(alphabet[last^1])
			spellings[fmt.Sprint("trailing bit of segment ", i)] = strings.Join(bits, ".")
		}
	}
	for name, spelling := range spellings {
		wantErrToken(t, s, name, spelling)
	}
}

func TestTokenRotation(t *testing.T) {
	old, both, fresh := newSigner(t, secret(1)), newSigner(t, secret(2), secret(1)), newSigner(t, secret(2))
	oldToken, newToken := sign(t, old, claims()), sign(t, both, claims())
	for name, c := range map[string]struct {
		s     *continuation.Signer
		token string
		good  bool
	}{
		"old token, both":      {both, oldToken, true},
		"new token, both":      {both, newToken, true},
		"new token, new alone": {fresh, newToken, true},
		"old token, new alone": {fresh, oldToken, false},
		"new token, old alone": {old, newToken, false},
	} {
		if _, err := c.s.Verify(c.token, before); (err == nil) != c.good {
			t.Errorf("%s: Verify = %v, want success: %v", name, err, c.good)
		}
	}
}

func TestNewSignerRefuses(t *testing.T) {
	for name, secrets := range map[string][][]byte{
		"none":         nil,
		"empty":        {{}},
		"short":        {[]byte("hunter2hunter2hunter2hunter2hun")},
		"second short": {secret(1), []byte("hunter2")},
	} {
		_, err := continuation.NewSigner(secrets)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("NewSigner with secrets %s = %v, want an error without the secret", name, err)
		}
	}
}

func TestSignRefuses(t *testing.T) {
	s := newSigner(t, secret(1))
	for name, change := range map[string]func(*continuation.Claims){
		"no execution":  func(c *continuation.Claims) { c.Execution = "" },
		"no session":    func(c *continuation.Claims) { c.Session = "" },
		"no round":      func(c *continuation.Claims) { c.Round = 0 },
		"no expiry":     func(c *continuation.Claims) { c.Expires = time.Time{} },
		"not UTF-8":     func(c *continuation.Claims) { c.Principal = "\xff" },
		"far too large": func(c *continuation.Claims) { c.Principal = strings.Repeat("x", 10_000) },
	} {
		c := claims()
		change(&c)
		if token, err := s.Sign(c); err == nil {
			t.Errorf("Sign of claims with %s = %q, want an error", name, token)
		}
	}
}

// Only the very text that was signed is accepted.
func FuzzVerify(f *testing.F) {
	s := newSigner(f, secret(1), secret(2))
	good := sign(f, newSigner(f, secret(1)), claims())
	f.Add(good)
	f.Add(good + "=")
	f.Add(sign(f, newSigner(f, secret(3)), claims()))
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Fuzz(func(t *testing.T, token string) {
		c, err := s.Verify(token, before)
		if err == nil && token != good {
			t.Fatalf("token %q passed as %+v", token, c)
		}
		if err != nil && !errors.Is(err, continuation.ErrToken) {
			t.Fatalf("Verify(%q) = %v, want ErrToken", token, err)
		}
	})
}

func BenchmarkSign(b *testing.B) {
	s, c := newSigner(b, secret(1)), claims()
	b.ReportAllocs()
	for b.Loop() {
		sign(b, s, c)
	}
}

func BenchmarkVerify(b *testing.B) {
	s := newSigner(b, secret(1))
	token := sign(b, s, claims())
	for whose, by := range map[string]*continuation.Signer{"its own": s, "another's": newSigner(b, secret(1))} {
		b.Run(whose, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := by.Verify(token, before); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
