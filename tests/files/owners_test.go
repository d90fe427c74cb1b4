package tests

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
)

// tokenSecret signs the tokens of LibreChat here.
const tokenSecret = "tests-librechat-0123456789abcdef0123456789"

// withTokens are the settings of a server that takes tokens of LibreChat beside keys.
var withTokens = settings{"JWT_HS256_SECRET": tokenSecret, "JWT_ALGORITHMS": "HS256"}

// user is a client with a fresh token of LibreChat.
func (s *server) user(t testing.TB, tenant, id string) client {
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
	return client{s.url, text + "." + encode(mac.Sum(nil))}
}

// TestFilesOfOthers tries every route to files of another principal.
func TestFilesOfOthers(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		server := serve(t, s, withTokens)
		// A token lives for minutes, and these tests wait for others.
		user := func(tenant, id string) func() client {
			return func() client { return server.user(t, tenant, id) }
		}
		principals := map[string]func() client{
			"alice": server.alice, "bob": server.bob,
			"ada of one": user("one", "ada"), "eve of one": user("one", "eve"), "ada of two": user("two", "ada"),
			// Named like a key.
			"alice of alice": user("alice", "alice"), "key of alice": user("key:alice", "alice"),
		}
		for name, owner := range principals {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				owner := owner()
				f := owner.upload(t, one("secret", "secret"))
				left := owner.post(t, program{Session: f.Storage, Code: "open('left', 'w').write('secret')"})
				left.leaves(t, "left", "secret inherited")
				output := left.file(t, "left").fileRef
				for other, c := range principals {
					if other != name {
						tryFile(t, c(), other, f)
						tryFile(t, c(), other, output)
					}
				}
				// And nothing has changed.
				if a, b := owner.download(t, f), owner.download(t, output); a != "secret" || b != "secret" {
					t.Errorf("the files are %q and %q now, want them as they were", a, b)
				}
				owner.post(t, program{Session: f.Storage, Code: "print(sorted(os.listdir()))"}).completes(t, "['left', 'secret']\n")
			})
		}
	})
}

// tryFile tries to get at a file of another principal.
func tryFile(t *testing.T, c client, name string, f fileRef) {
	t.Helper()
	file := f.Storage + "/" + f.ID
	for _, scope := range []string{"", "?kind=user", "?kind=user&id=alice", "?kind=agent&id=alice", "?kind=skill&id=alice&version=1", "?entity_id=alice"} {
		for _, route := range []struct{ method, path string }{
			{http.MethodGet, "/download/" + file},
			{http.MethodGet, "/sessions/" + f.Storage + "/objects/" + f.ID},
			{http.MethodDelete, "/files/" + file},
			{http.MethodDelete, "/sessions/" + f.Storage + "/objects/" + f.ID},
			{http.MethodGet, "/files/" + f.Storage},
		} {
			if got := c.files(t, route.method, route.path+scope); got.code != 403 || got.body != `{"error":"Unauthorized"}` {
				t.Errorf("%s %s%s as %s: got %v, want 403", route.method, route.path, scope, name, got)
			}
		}
	}
	for _, kind := range []string{"", "user", "agent", "skill"} {
		ref := fileRef{ID: f.ID, Name: "x", Storage: f.Storage, Resource: "alice", Kind: kind}
		if kind == "skill" {
			ref.Version = 1
		}
		c.post(t, program{Files: []fileRef{ref}, Code: "print(open('x').read())"}).fails(t, 403, "Unauthorized file reference")
	}
	a := c.post(t, program{Session: f.Storage, Code: "print(os.listdir())\nopen('secret', 'w').write('overwritten')"})
	a.completes(t, "[]\n")
	if a.Session == f.Storage {
		t.Errorf("%s runs in the session of another principal", name)
	}
}

// TestFilesOfTenants shares the files of agents and skills within a tenant.
func TestFilesOfTenants(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		server := serve(t, s, withTokens)
		ada, eve, stranger := server.user(t, "one", "ada"), server.user(t, "one", "eve"), server.user(t, "two", "ada")
		f := ada.upload(t, one("x", "shared").with("kind", "agent").with("id", "agent_7"))
		f.Kind, f.Resource = "agent", "agent_7"
		a := eve.post(t, program{Files: []fileRef{f}, Code: "print(open('x').read())\nos.remove('x')"})
		a.completes(t, "shared\n")
		a.leaves(t, "x inherited")
		for _, c := range []client{ada, eve} {
			got := c.files(t, http.MethodGet, fmt.Sprintf("/download/%s/%s?kind=agent&id=agent_7", f.Storage, f.ID))
			if got.body != "shared" {
				t.Errorf("the agent's file: got %v, want it as it was", got)
			}
		}
		stranger.post(t, program{Files: []fileRef{f}, Code: "print()"}).fails(t, 403, "Unauthorized file reference")
	})
}

// TestFilesNeedAuthentication asks without credentials.
func TestFilesNeedAuthentication(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		server := serve(t, s, withTokens)
		f := server.alice().upload(t, one("x", "x"))
		for _, key := range []string{"", "wrong", server.user(t, "one", "ada").key + "x"} {
			c := client{server.url, key}
			for _, route := range []struct{ method, path string }{
				{http.MethodPost, "/upload"},
				{http.MethodPost, "/upload/batch"},
				{http.MethodGet, "/files/" + f.Storage},
				{http.MethodGet, "/sessions/" + f.Storage + "/objects/" + f.ID},
				{http.MethodGet, "/download/" + f.Storage + "/" + f.ID},
				{http.MethodDelete, "/files/" + f.Storage + "/" + f.ID},
				{http.MethodDelete, "/sessions/" + f.Storage + "/objects/" + f.ID},
			} {
				if got := c.files(t, route.method, route.path); got.code != 401 {
					t.Errorf("%s %s with the key %q: got %v, want 401", route.method, route.path, key, got)
				}
			}
		}
	})
}
