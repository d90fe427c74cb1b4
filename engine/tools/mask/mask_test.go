package mask

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestT10Encodings shows that a secret is masked in all forms in which endpoints echo one.
func TestT10Encodings(t *testing.T) {
	for _, secret := range []string{"sk-live/4f9+2b=7&c d", `quote"back\slash<tag>é€😀`, "0123456789abcdef", "12345678"} {
		m := New([]string{"\n " + secret + "\n"})
		quoted, err := json.Marshal(map[string]string{"key": secret})
		if err != nil {
			t.Fatal(err)
		}
		ascii := fmt.Sprintf("%+q", secret)
		for name, text := range map[string]string{
			"plain":         "Authorization: Bearer " + secret + ", twice " + secret,
			"JSON":          string(quoted),
			"JSON in ASCII": strings.ReplaceAll(ascii, `\U0001f600`, `\ud83d\ude00`),
			"slashes":       strings.ReplaceAll(string(quoted), "/", `\/`),
			"query":         "https://api.example.com/?key=" + url.QueryEscape(secret) + "&x=1",
			"path":          "https://api.example.com/" + url.PathEscape(secret) + "/x",
			"lower case":    lowerEscapes(url.QueryEscape(secret)),
			"url.Error":     (&url.Error{Op: "Get", URL: "http://h/?key=" + url.QueryEscape(secret), Err: errors.New("refused")}).Error(),
			"every byte":    percent(secret, func(byte) bool { return false }),
			"base64":        "Basic " + base64.StdEncoding.EncodeToString([]byte(secret)),
			"Basic 1":       "Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+secret)),
			"Basic 2":       "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+secret+" and more")),
			"Basic 3":       "Basic " + base64.URLEncoding.EncodeToString([]byte("you:"+secret+"!")),
		} {
			masked := m.Text(text)
			if !strings.Contains(masked, Mask) || leaks(masked, secret) {
				t.Errorf("%s of %s: %s became %s", name, secret, text, masked)
			}
			if got := string(m.Bytes([]byte(text))); got != masked {
				t.Errorf("%s: Bytes gives %s, Text %s", name, got, masked)
			}
		}
	}
}

// leaks reports whether eight bytes of a secret can be read in a text, as they are or in base64.
func leaks(text, secret string) bool {
	texts := []string{text}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(` ":*,`, r) }) {
		for skip := range min(4, len(word)) {
			for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				decoded, _ := encoding.DecodeString(strings.TrimRight(word[skip:], "="))
				texts = append(texts, string(decoded))
			}
		}
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		for i := 0; i+MinSecret <= len(secret); i++ {
			if strings.Contains(text, secret[i:i+MinSecret]) {
				return true
			}
		}
		return false
	})
}

// TestT10JSON shows that a masked result is valid JSON and has the same meaning except for the secrets.
func TestT10JSON(t *testing.T) {
	m := New([]string{"1234567812345678", `a","admin":"b`, "tok/en-é-secret"})
	for raw, want := range map[string]string{
		`{"a": [1, 2.50, null, true, "x"], "b":{}}`:    `{"a":[1,2.50,null,true,"x"],"b":{}}`,
		`{"id": 1234567812345678}`:                     `{"id":"***"}`,
		`{"id": "x1234567812345678y"}`:                 `{"id":"x***y"}`,
		`{"name":"a\",\"admin\":\"b"}`:                 `{"name":"***"}`,
		`{"name":"a","admin":"b"}`:                     `{"name":"a","admin":"b"}`,
		`["\u0074ok\/en-\u00e9-secret"]`:               `["***"]`,
		`{"tok/en-é-secret":1}`:                        `{"***":1}`,
		`"` + url.QueryEscape("tok/en-é-secret") + `"`: `"***"`,
		`not JSON 1234567812345678`:                    `not JSON ***`,
		`9007199254740993`:                             `9007199254740993`,
	} {
		if got := string(m.JSON(json.RawMessage(raw))); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
}

// TestT10BeforeTheCut shows why a text is masked before it is truncated: half a secret is not recognized.
func TestT10BeforeTheCut(t *testing.T) {
	const secret, limit = "sk-live-0123456789abcdef", 20_480
	m := New([]string{secret})
	text := strings.Repeat("x", limit-10) + secret
	if masked := m.Text(text); leaks(masked[:min(limit, len(masked))], secret) {
		t.Error("the secret is cut and not masked")
	}
	if masked := m.Text(text[:limit]); !leaks(masked, secret) {
		t.Error("the test does not show what it says")
	}
}

// TestT11Oracle shows that masking reveals nothing about parts of secrets, and that short ones are not masked.
func TestT11Oracle(t *testing.T) {
	const secret = "sk-live-0123456789abcdef"
	m := New([]string{"", "a", "\n", " \t ", "1234567", secret, secret + "-2"})
	for _, text := range []string{"a", "banana", "1234567", "", "\n"} {
		if got := m.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	for n := range secret {
		if guess := secret[:n] + "~" + secret[n+1:]; m.Text(guess) != guess || m.Text(secret[:n]) != secret[:n] || n > 0 && m.Text(secret[n:]) != secret[n:] {
			t.Errorf("a guess that is right but for %d is masked", n)
		}
	}
	if got := m.Text(secret + "-2 " + secret + "-3 " + secret + secret); got != "*** ***-3 ******" {
		t.Errorf("the longest secret does not win: %s", got)
	}
	var none *Masker
	if none.Text(secret) != secret || string(none.Bytes([]byte(secret))) != secret || string(none.JSON(json.RawMessage(`"x"`))) != `"x"` {
		t.Error("a nil Masker changes texts")
	}
	if New(nil) != nil || New([]string{"short"}) != nil {
		t.Error("a Masker without secrets is not nil")
	}
}

// TestMostSecrets shows that masking is fast with the maximum number of secrets of the maximum size.
func TestMostSecrets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	secrets := make([]string, 100)
	for i := range secrets {
		secret := make([]byte, 8<<10)
		for j := range secret {
			secret[j] = "abcdefghijklmnop/+ \"é"[random.IntN(20)]
		}
		secrets[i] = string(secret)
	}
	m := New(secrets)
	text := strings.Repeat("an answer of an endpoint ", 40_000) + secrets[50] + base64.StdEncoding.EncodeToString([]byte(secrets[99]))
	start := time.Now()
	masked := m.Text(text)
	t.Logf("%d bytes took %s", len(text), time.Since(start))
	if strings.Count(masked, Mask) != 2 {
		t.Errorf("%d secrets are masked, want 2", strings.Count(masked, Mask))
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}
