package files

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"fermata/tests/harness"
)

// tokenSecret signs the LibreChat tokens of these tests.
const tokenSecret = "tests-librechat-0123456789abcdef0123456789"

// withTokens are the settings of a server that accepts LibreChat tokens besides API keys.
var withTokens = harness.Settings{"JWT_HS256_SECRET": tokenSecret, "JWT_ALGORITHMS": "HS256"}

// userWithToken returns a client with a new LibreChat token.
func userWithToken(t testing.TB, s *harness.Server, tenant, id string) harness.Client {
	t.Helper()
	now := time.Now().Unix()
	claims, err := json.Marshal(map[string]any{
		"iss": "librechat", "aud": "codeapi", "sub": id, "tenant_id": tenant, "jti": uuid.NewString(),
		"iat": now, "nbf": now, "exp": now + 300, "principal_source": "librechat_jwt", "auth_context_hash": "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256","typ":"JWT","kid":"hs256-dev"}`)) + "." + encode(claims)
	mac := hmac.New(sha256.New, []byte(tokenSecret))
	mac.Write([]byte(text))
	return harness.Client{URL: s.URL, Key: text + "." + encode(mac.Sum(nil))}
}

// TestFilesOfOthers tries to reach the files of another principal by every route.
func TestFilesOfOthers(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, withTokens)
		// Tokens are made when they are needed: they expire after minutes, and these tests may
		// have to wait for others.
		user := func(tenant, id string) func() harness.Client {
			return func() harness.Client { return userWithToken(t, server, tenant, id) }
		}
		principals := map[string]func() harness.Client{
			"alice": server.Alice, "bob": server.Bob,
			"ada of one": user("one", "ada"), "eve of one": user("one", "eve"), "ada of two": user("two", "ada"),
			// Users whose names look like those of keys.
			"alice of alice": user("alice", "alice"), "key of alice": user("key:alice", "alice"),
		}
		for name, owner := range principals {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				owner := owner()
				f := owner.Upload(t, harness.OneFile("secret", "secret"))
				left := owner.Post(t, harness.Program{Session: f.Storage, Code: "open('left', 'w').write('secret')"})
				left.Leaves(t, "left", "secret inherited")
				output := left.File(t, "left").FileRef
				for other, c := range principals {
					if other != name {
						harness.TryForeignFile(t, c(), other, f)
						harness.TryForeignFile(t, c(), other, output)
					}
				}
				// The files must not have changed.
				if a, b := owner.Download(t, f), owner.Download(t, output); a != "secret" || b != "secret" {
					t.Errorf("the files are %q and %q now, want them as they were", a, b)
				}
				owner.Post(t, harness.Program{Session: f.Storage, Code: "print(sorted(os.listdir()))"}).Completes(t, "['left', 'secret']\n")
			})
		}
	})
}

// TestFilesOfTenants checks that users of one tenant share the files of an agent, and that another
// tenant does not see them.
func TestFilesOfTenants(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, withTokens)
		ada, eve, stranger := userWithToken(t, server, "one", "ada"), userWithToken(t, server, "one", "eve"), userWithToken(t, server, "two", "ada")
		f := ada.Upload(t, harness.OneFile("x", "shared").With("kind", "agent").With("id", "agent_7"))
		f.Kind, f.Resource = "agent", "agent_7"
		a := eve.Post(t, harness.Program{Files: []harness.FileRef{f}, Code: "print(open('x').read())\nos.remove('x')"})
		a.Completes(t, "shared\n")
		a.Leaves(t, "x inherited")
		for _, c := range []harness.Client{ada, eve} {
			got := c.Files(t, http.MethodGet, fmt.Sprintf("/download/%s/%s?kind=agent&id=agent_7", f.Storage, f.ID))
			if got.Body != "shared" {
				t.Errorf("the agent's file: got %v, want it as it was", got)
			}
		}
		stranger.Post(t, harness.Program{Files: []harness.FileRef{f}, Code: "print()"}).Fails(t, 403, "Unauthorized file reference")
	})
}

// TestFilesNeedAuthentication sends requests to the file routes without valid credentials.
func TestFilesNeedAuthentication(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, withTokens)
		f := server.Alice().Upload(t, harness.OneFile("x", "x"))
		for _, key := range []string{"", "wrong", userWithToken(t, server, "one", "ada").Key + "x"} {
			c := harness.Client{URL: server.URL, Key: key}
			for _, route := range []struct{ method, path string }{
				{http.MethodPost, "/upload"},
				{http.MethodPost, "/upload/batch"},
				{http.MethodGet, "/files/" + f.Storage},
				{http.MethodGet, "/sessions/" + f.Storage + "/objects/" + f.ID},
				{http.MethodGet, "/download/" + f.Storage + "/" + f.ID},
				{http.MethodDelete, "/files/" + f.Storage + "/" + f.ID},
				{http.MethodDelete, "/sessions/" + f.Storage + "/objects/" + f.ID},
			} {
				if got := c.Files(t, route.method, route.path); got.HTTPStatus != 401 {
					t.Errorf("%s %s with the key %q: got %v, want 401", route.method, route.path, key, got)
				}
			}
		}
	})
}
