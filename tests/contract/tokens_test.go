package contract

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// A forger holds the parts of a token and makes forged tokens from them.
type forger struct {
	header, claims map[string]any
	signature      string
}

// open takes a token apart, which is a JSON Web Token.
func open(t *testing.T, token string) forger {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("token %q has %d parts, want 3", token, len(parts))
	}
	f := forger{signature: parts[2]}
	for part, into := range map[string]*map[string]any{parts[0]: &f.header, parts[1]: &f.claims} {
		raw, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// text returns the header and the claims in the form that is signed.
func (f forger) text() string {
	encode := func(v any) string {
		raw, _ := json.Marshal(v) // They were JSON before.
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	return encode(f.header) + "." + encode(f.claims)
}

// signed returns the token with a signature made with key.
func (f forger) signed(key string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(f.text()))
	return f.text() + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// TestForgedTokens continues an execution with changed and forged tokens.
func TestForgedTokens(t *testing.T) {
	const invalid = "Invalid continuation token"
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		c := server.Alice()
		pause := c.Pause(t, harness.AskOnce)
		good := open(t, pause.Token)
		// refused checks that the server refuses a token.
		refused := func(t *testing.T, token string) {
			t.Helper()
			if token == pause.Token {
				t.Fatal("this is the good token")
			}
			c.Post(t, harness.Continuation{Token: token, Results: pause.Continue(harness.Echo).Results}).Fails(t, 400, invalid)
		}
		for claim, old := range good.claims {
			for _, value := range []any{nil, "", "other", 7, -1, 1e18, true, []any{old}, map[string]any{}} {
				forged := good
				forged.claims = maps.Clone(good.claims)
				forged.claims[claim] = value
				refused(t, forged.text()+"."+good.signature)
				refused(t, forged.signed("another secret of at least 32 bytes"))
			}
			forged := good
			forged.claims = maps.Clone(good.claims)
			delete(forged.claims, claim)
			refused(t, forged.text()+"."+good.signature)
		}
		for _, change := range []map[string]any{
			{"alg": "none"},
			{"alg": "NONE"},
			{"alg": "HS384"},
			{"alg": "HS512"},
			{"alg": "RS256"},
			{"kid": "other"},
			{"kid": ""},
			{"kid": "../../dev/null"},
			{"kid": 7},
			{"typ": "JWT"},
			{"typ": nil},
			{"crit": []string{"x"}},
			{"jku": "http://127.0.0.1/"},
			{"b64": false},
			{"zip": "DEF"},
		} {
			forged := good
			forged.header = maps.Clone(good.header)
			maps.Copy(forged.header, change)
			refused(t, forged.text()+".")
			refused(t, forged.text()+"."+good.signature)
			refused(t, forged.signed("another secret of at least 32 bytes"))
			refused(t, forged.signed(""))
		}
		// Even with the right key, a token in another spelling is refused.
		forged := good
		forged.header = maps.Clone(good.header)
		forged.header["x"] = 1
		refused(t, forged.signed(harness.Secret))

		token := pause.Token
		parts := strings.Split(token, ".")
		swapped := []byte(token)
		last := len(swapped) - 1
		// The last character has bits that a lenient decoder ignores.
		const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		swapped[last] = alphabet[strings.IndexByte(alphabet, swapped[last])^1]
		for _, other := range []string{
			"x", ".", "..", "a.b.c", "null", "{}", token + "=", token + "==", token + ".", "." + token, token + " ", " " + token, token + "\n",
			strings.ToUpper(token), token[1:], token[:len(token)-1], token + token, token + "A", string(swapped),
			parts[0] + "." + parts[1], parts[0] + "." + parts[1] + ".", parts[1] + "." + parts[0] + "." + parts[2],
			parts[0] + "=." + parts[1] + "=." + parts[2] + "=", strings.NewReplacer("-", "+", "_", "/").Replace(token) + "=",
			token[:40] + "\x00" + token[40:], "é" + token, strings.Repeat("A", 1<<20), strings.Repeat(".", 1<<16),
			base64.RawURLEncoding.EncodeToString([]byte(`{"execution_id":"x","round_trip":1,"signature":""}`)),
		} {
			refused(t, other)
		}
		for i := range len(token) {
			flipped := []byte(token)
			flipped[i] ^= 1
			refused(t, string(flipped))
		}
		c.Post(t, pause.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
	})
}

// TestTokensOfOtherRounds uses tokens of earlier rounds, other executions and other servers.
func TestTokensOfOtherRounds(t *testing.T) {
	two := harness.Program{Code: "print(await ask(n=1))\nprint(await ask(n=2))", Tools: harness.Tools("ask")}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		c := server.Alice()
		t.Run("an old round", func(t *testing.T) {
			first := c.Pause(t, two)
			second := c.Pause(t, first.Continue(harness.Echo))
			if first.Token == second.Token {
				t.Error("both rounds have one token")
			}
			other := first.Continue(harness.Value(`"another"`))
			c.Post(t, other).Fails(t, 400, "Invalid continuation token")
			mixed := second.Continue(harness.Echo)
			mixed.Token = first.Token
			c.Post(t, mixed).Fails(t, 400, "Invalid continuation token")
			c.Post(t, second.Continue(harness.Echo)).Completes(t, "{'n': 1}\n{'n': 2}\n")
		})
		t.Run("an old round, the same request", func(t *testing.T) {
			first := c.Pause(t, two)
			second := c.Pause(t, first.Continue(harness.Echo))
			again := c.Post(t, first.Continue(harness.Echo))
			if again.Raw != second.Raw {
				t.Errorf("got %v, want the answer again: %v", again, second)
			}
			c.Post(t, second.Continue(harness.Echo)).Completes(t, "{'n': 1}\n{'n': 2}\n")
		})
		t.Run("after the end", func(t *testing.T) {
			pause := c.Pause(t, harness.AskOnce)
			end := c.Post(t, pause.Continue(harness.Echo))
			end.Completes(t, "{'n': 1}\n")
			if again := c.Post(t, pause.Continue(harness.Echo)); again.Raw != end.Raw || again.HTTPStatus != end.HTTPStatus {
				t.Errorf("got %v for the same request, want the answer again: %v", again, end)
			}
			c.Post(t, pause.Continue(harness.Value("2"))).Fails(t, 400, "Execution expired")
			server.Bob().Post(t, pause.Continue(harness.Echo)).Fails(t, 403, "Forbidden")
		})
		t.Run("results of another execution", func(t *testing.T) {
			// Each execution counts its calls from 1, so the ids fit both; the tokens tell which
			// execution is meant.
			one, other := c.Pause(t, harness.AskOnce), c.Pause(t, harness.AskOnce)
			c.Post(t, one.Continue(harness.Value("1"))).Completes(t, "1\n")
			c.Post(t, other.Continue(harness.Value("2"))).Completes(t, "2\n")
		})
		t.Run("another session", func(t *testing.T) {
			one := c.Pause(t, harness.Program{Code: harness.AskOnce.Code, Tools: harness.AskOnce.Tools, Session: "session-a-01234567890"})
			other := c.Pause(t, harness.Program{Code: harness.AskOnce.Code, Tools: harness.AskOnce.Tools, Session: "session-b-01234567890"})
			forged := open(t, one.Token)
			forged.claims["ses"] = "session-b-01234567890"
			c.Post(t, harness.Continuation{Token: forged.signed(harness.Secret), Results: one.Continue(harness.Echo).Results}).Fails(t, 400, "Invalid continuation token")
			c.Post(t, one.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
			c.Post(t, other.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
		})
		t.Run("of another server", func(t *testing.T) {
			pause := c.Pause(t, harness.AskOnce)
			other := harness.Serve(t, s, harness.Settings{"SECRET": "another secret of at least 32 bytes"}).Alice()
			other.Post(t, pause.Continue(harness.Echo)).Fails(t, 400, "Invalid continuation token")
			c.Post(t, pause.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
		})
	})
}

// TestPauseLifetime checks that an execution ends when nobody continues it in time.
func TestPauseLifetime(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		if testing.Short() {
			t.Skip("waits for the end of a pause")
		}
		lifetime := 5 * time.Second // Making five sandboxes must take less.
		if s.Docker() {
			// Docker makes one container after the other, and each takes a moment.
			lifetime = 10 * time.Second
		}
		server := harness.ServeAlone(t, s, harness.Settings{"PAUSE_TTL": lifetime.String(), "POOL_SIZE": "1"})
		c := server.Alice()
		before := harness.Resting(server.Processes)
		var pauses []harness.Answer
		for range 5 {
			pauses = append(pauses, c.Pause(t, harness.AskOnce))
		}
		if got, want := server.Processes(), before+5; got < want {
			t.Errorf("%d processes with 5 pauses, want at least %d", got, want)
		}
		time.Sleep(lifetime / 2)
		c.Post(t, pauses[4].Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
		time.Sleep(lifetime/2 + 500*time.Millisecond) // The rest of the pause, and a little more.
		err := harness.Within(10*time.Second, func() error { return harness.AtMost("processes", server.Processes(), before) })
		if err != nil {
			t.Errorf("after the pauses have ended: %v", err)
		}
		for _, pause := range pauses[:4] {
			c.Post(t, pause.Continue(harness.Echo)).Fails(t, 400, "Execution expired")
		}
	})
}
