package auth_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"fermata/api/auth"
)

// bare is jwtOptions without a key.
func bare() auth.JWTOptions {
	o := jwtOptions()
	o.JWKS, o.HMACSecret = "", nil
	return o
}

func TestOneKey(t *testing.T) {
	k := issuer()
	pkcs1 := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&k.rsa.PublicKey)}))
	ed := sign(t, nil, claims(nil))
	rs := signWith(t, jwt.SigningMethodRS256, k.rsa, nil, claims(nil))
	for _, c := range []struct{ name, key, kid, token string }{
		{"PEM", publicPEM(t, k.ed), "ed", ed},
		{"PEM in one line", strings.ReplaceAll(publicPEM(t, k.ed), "\n", `\n`), "ed", ed},
		{"RSA", publicPEM(t, k.rsa), "ed", rs},
		{"RSA of PKCS 1", pkcs1, "ed", rs},
		{"JWK", edJWK(k.ed, ""), "ed", ed},
		{"JWK with its kid", edJWK(k.ed, `,"kid":"ed"`), "", ed},
		{"JWK with both", edJWK(k.ed, `,"kid":"ed","use":"sig","key_ops":["verify"]`), "ed", ed},
		{"JWK of RSA", rsaJWK(k.rsa, `,"alg":"RS256"`), "ed", rs},
	} {
		t.Run(c.name, func(t *testing.T) {
			tokens := bare()
			tokens.PublicKey, tokens.KeyID = c.key, c.kid
			v := newJWT(t, tokens)
			if got := ask(t, v, c.token); got != "jwt:acme:ada" {
				t.Errorf("got principal %q, want jwt:acme:ada", got)
			}
		})
	}
}

// Mistakes in keys and options are found at the start.
func TestMistakesInKeys(t *testing.T) {
	k := issuer()
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k.ed)
	if err != nil {
		t.Fatal(err)
	}
	privatePEM := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	one := func(key, kid string) func(*auth.JWTOptions) {
		return func(o *auth.JWTOptions) { o.PublicKey, o.KeyID = key, kid }
	}
	set := func(keys ...string) func(*auth.JWTOptions) {
		return func(o *auth.JWTOptions) { o.JWKS = `{"keys":[` + strings.Join(keys, ",") + `]}` }
	}
	dir := func(files map[string]string) func(*auth.JWTOptions) {
		return func(o *auth.JWTOptions) { o.KeysDir = keyDir(t, files) }
	}
	for _, c := range []struct {
		name   string
		change func(*auth.JWTOptions)
		want   string
	}{
		{"no keys", func(*auth.JWTOptions) {}, "there are no keys"},
		{"no issuer", func(o *auth.JWTOptions) { o.Issuer = "" }, "issuer"},
		{"no audience", func(o *auth.JWTOptions) { o.Audience = "" }, "audience"},
		{"no algorithm", func(o *auth.JWTOptions) { o.Algorithms = nil }, "no algorithm"},
		{"algorithm none", func(o *auth.JWTOptions) { o.Algorithms = []string{"none"} }, `"none"`},
		{"no kid", one(publicPEM(t, k.ed), ""), "kid is missing"},
		{"another kid", one(edJWK(k.ed, `,"kid":"a"`), "b"), `kid "a", but stands for "b"`},
		{"no key", one("key", "ed"), "neither PEM nor a JWK"},
		{"two keys", one(publicPEM(t, k.ed)+publicPEM(t, k.ed), "ed"), "more than one key"},
		{"private key", one(privatePEM, "ed"), "PRIVATE KEY"},
		{"private JWK", one(edJWK(k.ed, `,"d":"`+b64(k.ed.Seed())+`"`), "ed"), "secret"},
		{"symmetric JWK", one(`{"kty":"oct","k":"AAAA"}`, "ed"), "secret"},
		{"EC key", one(publicPEM(t, ec), "ed"), "neither an Ed25519 nor an RSA key"},
		{"small RSA key", one(publicPEM(t, small), "ed"), "1024 bits"},
		{"broken PEM", one("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "ed"), "failed to parse"},
		{"JWK for encryption", one(rsaJWK(k.rsa, `,"use":"enc"`), "ed"), "not for signatures"},
		{"JWK for signing only", one(rsaJWK(k.rsa, `,"key_ops":["sign"]`), "ed"), "not for signatures"},
		{"JWK for RS512", one(rsaJWK(k.rsa, `,"alg":"RS512"`), "ed"), `"RS512"`},
		{"JWK without a key", one(`{"kty":"OKP","crv":"Ed25519"}`, "ed"), "public key"},
		{"set no JSON", func(o *auth.JWTOptions) { o.JWKS = "{" }, "read key set"},
		{"empty set", set(), "no keys in the key set"},
		{"set without kid", set(edJWK(k.ed, "")), "key 0 of the key set: the kid is missing"},
		{"set with one kid twice", set(edJWK(k.ed, `,"kid":"a"`), edJWK(k.other, `,"kid":"a"`)), `key 1 of the key set: there are two keys with kid "a"`},
		{"RSA not allowed", func(o *auth.JWTOptions) {
			o.Algorithms = []string{auth.EdDSA}
			set(rsaJWK(k.rsa, `,"kid":"rsa"`))(o)
		}, "RS256 is not allowed"},
		{"HS256 not allowed", func(o *auth.JWTOptions) {
			o.Algorithms, o.HMACSecret = []string{auth.EdDSA}, []byte(hmacSecret)
		}, "HS256 is not allowed"},
		{"short secret", func(o *auth.JWTOptions) { o.HMACSecret = make([]byte, 31) }, "fewer than 32 bytes"},
		{"secret without kid", func(o *auth.JWTOptions) { o.HMACSecret, o.HMACKeyID = []byte(hmacSecret), "" }, "kid is missing"},
		{"no directory", func(o *auth.JWTOptions) { o.KeysDir = filepath.Join(t.TempDir(), "none") }, "no such file"},
		{"empty directory", dir(map[string]string{".hidden.pem": publicPEM(t, k.ed)}), "there are no keys in"},
		{"broken file", dir(map[string]string{"a.pem": publicPEM(t, k.ed), "README.txt": "These are keys."}), "key file README.txt"},
		{"large file", dir(map[string]string{"a.pem": strings.Repeat("a", 65<<10)}), "too large"},
		{"two files of one kid", dir(map[string]string{"a.pem": publicPEM(t, k.ed), "a.json": edJWK(k.other, "")}), `two keys with kid "a"`},
		{"directory and key of one kid", func(o *auth.JWTOptions) {
			one(publicPEM(t, k.ed), "a")(o)
			dir(map[string]string{"a.pem": publicPEM(t, k.other)})(o)
		}, `two keys with kid "a"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := bare()
			c.change(&o)
			_, err := auth.NewJWT(o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("NewJWT = %v, want an error with %q", err, c.want)
			}
		})
	}
}

// keyDir makes a directory of files.
func keyDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		writeFile(t, filepath.Join(dir, name), content)
	}
	return dir
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestKeyDirectory(t *testing.T) {
	k := issuer()
	synctest.Test(t, func(t *testing.T) {
		dir := keyDir(t, map[string]string{"ed.pem": publicPEM(t, k.ed), "rs.json": rsaJWK(k.rsa, `,"kid":"rs"`), "a.b.pem": publicPEM(t, k.ed), "bare": publicPEM(t, k.ed)})
		if err := os.Mkdir(filepath.Join(dir, "..data"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "more"), 0o700); err != nil {
			t.Fatal(err)
		}
		tokens := bare()
		tokens.KeysDir = dir
		v := newJWT(t, tokens)
		good := func(when string, key ed25519.PrivateKey, kid string, want bool) {
			t.Helper()
			token := signWith(t, jwt.SigningMethodEdDSA, key, map[string]any{"kid": kid}, claims(nil))
			if got := ask(t, v, token); (got != "") != want {
				t.Errorf("%s, kid %s: got principal %q, good should be %t", when, kid, got, want)
			}
		}
		good("at first", k.ed, "ed", true)
		good("at first", k.ed, "a.b", true)
		good("at first", k.ed, "bare", true)
		good("at first", k.ed, "more", false)
		if got := ask(t, v, signWith(t, jwt.SigningMethodRS256, k.rsa, map[string]any{"kid": "rs"}, claims(nil))); got == "" {
			t.Error("the JWK in the directory is not known")
		}

		// A key is replaced and one is added.
		writeFile(t, filepath.Join(dir, "ed.pem"), publicPEM(t, k.other))
		writeFile(t, filepath.Join(dir, "new.pem"), publicPEM(t, k.ed))
		time.Sleep(29 * time.Second)
		good("before it is read again", k.ed, "ed", true)
		good("before it is read again", k.ed, "new", false)
		time.Sleep(time.Second)
		good("after it was read again", k.ed, "ed", false)
		good("after it was read again", k.other, "ed", true)
		good("after it was read again", k.ed, "new", true)

		// One key is removed, one is broken, one has a second file with the same kid.
		if err := os.Remove(filepath.Join(dir, "new.pem")); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, "bare"), "-----BEGIN")
		writeFile(t, filepath.Join(dir, "a.b.json"), edJWK(k.other, ""))
		time.Sleep(30 * time.Second)
		good("taken away", k.ed, "new", false)
		good("broken", k.ed, "bare", false)
		good("two files", k.ed, "a.b", false)
		good("two files", k.other, "a.b", false)
		good("not touched", k.other, "ed", true)

		// While the directory is away the keys stay, but not for ever.
		if err := os.Rename(dir, dir+"-away"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(299 * time.Second)
		good("directory away", k.other, "ed", true)
		time.Sleep(30 * time.Second)
		good("directory away for long", k.other, "ed", false)
		if err := os.Rename(dir+"-away", dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		good("directory back", k.other, "ed", true)
	})
}

func TestKeysThatStayComeFirst(t *testing.T) {
	k := issuer()
	synctest.Test(t, func(t *testing.T) {
		tokens := bare()
		tokens.PublicKey, tokens.KeyID = publicPEM(t, k.ed), "ed"
		tokens.KeysDir = keyDir(t, map[string]string{"other.pem": publicPEM(t, k.other)})
		v := newJWT(t, tokens)
		writeFile(t, filepath.Join(tokens.KeysDir, "ed.pem"), publicPEM(t, k.other))
		time.Sleep(time.Minute)
		if got := ask(t, v, sign(t, nil, claims(nil))); got == "" {
			t.Error("a file in the directory has replaced a key of the settings")
		}
		if got := ask(t, v, signWith(t, jwt.SigningMethodEdDSA, k.other, nil, claims(nil))); got != "" {
			t.Errorf("got principal %q for the key in the file, want none", got)
		}
	})
}
