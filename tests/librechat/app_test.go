package tests

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// hostKID is the name of the key that signs the tokens of the app.
const hostKID = "lc-codeapi-2026-05"

// hostKey is that key.
var hostKey = sync.OnceValue(func() ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("tests of the app"))
	return ed25519.NewKeyFromSeed(seed[:])
})

// withHost are the settings of a server that the app may use: with a key, as older
// ones do, or with tokens.
func withHost() settings {
	public := hostKey().Public().(ed25519.PublicKey)
	return settings{"JWT_JWKS": fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","use":"sig","kid":%q,"x":%q}]}`,
		hostKID, base64.RawURLEncoding.EncodeToString(public))}
}

// A visitor sends one request to a server, each with credentials of its own.
type visitor func() client

// visitor returns a user of the app, which signs a fresh token for each request.
func (s *server) visitor(t testing.TB, key ed25519.PrivateKey, tenant, user string) visitor {
	return func() client {
		now := time.Now().Unix()
		claims := map[string]any{
			"iss": "librechat", "aud": "codeapi", "sub": user, "jti": uuid.NewString(), "iat": now, "nbf": now, "exp": now + 300,
			"tenant_id": tenant, "role": "USER", "principal_source": "librechat_jwt",
		}
		context := map[string]any{
			"chc_user_id": "", "org_id": "", "principal_source": "librechat_jwt", "role": "USER", "service_id": "", "sub": user, "tenant_id": tenant,
		}
		raw, err := json.Marshal(context)
		if err != nil {
			t.Fatal(err)
		}
		hash := sha256.Sum256(raw)
		claims["auth_context_hash"] = hex.EncodeToString(hash[:])
		if raw, err = json.Marshal(claims); err != nil {
			t.Fatal(err)
		}
		encode := base64.RawURLEncoding.EncodeToString
		text := encode([]byte(`{"alg":"EdDSA","typ":"JWT","kid":"`+hostKID+`"}`)) + "." + encode(raw)
		return client{s.url, text + "." + encode(ed25519.Sign(key, []byte(text)))}
	}
}

// A host is a version of the app: how it uploads files and asks for them.
type host struct {
	// fields come before an uploaded file.
	fields map[string]string
	// query is behind the address of a file.
	query string
	// age asks how old a file is, before each run.
	age func(t testing.TB, c client, f fileRef, query string) time.Duration
	// refer returns how it refers to a file.
	refer func(fileRef) fileRef
}

var (
	// olderHost is an app from before users of files had to be named.
	olderHost = host{
		fields: map[string]string{"entity_id": "asst_1"},
		query:  "?entity_id=asst_1",
		age:    ageInList,
		refer: func(f fileRef) fileRef {
			return fileRef{ID: f.ID, Name: f.Name, Session: f.Storage}
		},
	}
	newerHost = host{
		fields: map[string]string{"kind": "user", "id": "ada"},
		query:  "?kind=user&id=ada",
		age:    ageOfObject,
		refer: func(f fileRef) fileRef {
			return fileRef{ID: f.ID, Name: f.Name, Storage: f.Storage, Resource: "ada", Kind: "user"}
		},
	}
)

// ageOfObject asks for the properties of a file.
func ageOfObject(t testing.TB, c client, f fileRef, query string) time.Duration {
	t.Helper()
	r := c.files(t, http.MethodGet, "/sessions/"+f.Storage+"/objects/"+f.ID+query)
	var object struct {
		Modified time.Time `json:"lastModified"`
	}
	if err := json.Unmarshal([]byte(r.body), &object); err != nil || r.code != 200 {
		t.Fatalf("object: got %v (%v), want its properties", r, err)
	}
	return time.Since(object.Modified)
}

// ageInList looks a file up by the beginning of its name.
func ageInList(t testing.TB, c client, f fileRef, _ string) time.Duration {
	t.Helper()
	r := c.files(t, http.MethodGet, "/files/"+f.Storage+"?detail=summary")
	var list []struct {
		Name     string
		Modified time.Time `json:"lastModified"`
	}
	if err := json.Unmarshal([]byte(r.body), &list); err != nil || r.code != 200 {
		t.Fatalf("list: got %v (%v), want an array", r, err)
	}
	for _, item := range list {
		if strings.HasPrefix(item.Name, f.Storage+"/"+f.ID) {
			return time.Since(item.Modified)
		}
	}
	t.Fatalf("list: got %v, want %s/%s in it", r, f.Storage, f.ID)
	return 0
}

// TestHost replays what the app of LibreChat itself asks for, beside its client.
func TestHost(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		server := serve(t, s, withHost())
		for _, tc := range []struct {
			name string
			host host
			user visitor
		}{
			{"older, with a key", olderHost, server.alice},
			{"newer, with tokens", newerHost, server.visitor(t, hostKey(), "one", "ada")},
		} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				f := tc.host.upload(t, tc.user, "städte.csv", "city,degrees\nParis,5\n")
				tc.host.reads(t, tc.user, f)
				tc.host.runs(t, tc.user, f)
				tc.host.writes(t, tc.user)
				tc.host.deletes(t, tc.user, f)
			})
		}
	})
}

// upload uploads a file, as both versions of the app want it answered.
func (h host) upload(t *testing.T, user visitor, name, content string) fileRef {
	t.Helper()
	form := one(name, content)
	form.fields = h.fields
	r := user().uploadTo(t, "/upload", form)
	var body struct {
		Message string
		Session string `json:"session_id"`
		Storage string `json:"storage_session_id"`
		Files   []struct{ FileName, FileID string }
	}
	if err := json.Unmarshal([]byte(r.body), &body); err != nil || r.code != 200 || body.Message != "success" ||
		body.Session != body.Storage || len(body.Files) != 1 || body.Files[0].FileName != name {
		t.Fatalf("upload: got %v (%v), want success, a session by both names, and the file", r, err)
	}
	return fileRef{ID: body.Files[0].FileID, Name: name, Storage: body.Storage}
}

// reads is what the app does before a run, and how it reads files in a sandbox.
func (h host) reads(t *testing.T, user visitor, f fileRef) {
	t.Helper()
	if age := h.age(t, user(), f, h.query); age.Abs() >= 23*time.Hour {
		t.Errorf("age = %v, want less than 23 hours", age)
	}
	files := []fileRef{h.refer(f)}
	e := user().exec(t, nil, plain{Lang: "bash", Code: "cat -- '/mnt/data/" + f.Name + "'", Files: files})
	if e.code != 200 || e.Stdout != "city,degrees\nParis,5\n" || e.Stderr != "" {
		t.Errorf("cat: got %v, want the file", e)
	}
	missing := user().exec(t, nil, plain{Lang: "bash", Code: "cat -- '/mnt/data/missing.csv'", Files: files})
	if missing.code != 200 || missing.Stdout != "" || !strings.Contains(strings.ToLower(missing.Stderr), "no such file or directory") {
		t.Errorf("cat of a missing file: got %v, want no output, and an error that says so", missing)
	}
}

// runs runs a program with a tool that is given the file and leaves another, which it
// then downloads.
func (h host) runs(t *testing.T, user visitor, f fileRef) {
	t.Helper()
	paused := user().pause(t, program{Tools: tools("ask"), Files: []fileRef{h.refer(f)}, Code: py(`
		rows = open("städte.csv").read().splitlines()
		os.mkdir("out")
		open("out/größe 1.txt", "w").write(await ask(rows=len(rows)))
	`)})
	a := user().post(t, paused.answers(value(`"two rows"`)))
	a.completes(t, "")
	a.leaves(t, "out/größe 1.txt", "städte.csv inherited")
	left := a.file(t, "out/größe 1.txt").fileRef
	if left.Storage != left.Session {
		t.Errorf("got %+v, want one session by both names", left)
	}
	r := user().files(t, http.MethodGet, "/download/"+left.Storage+"/"+left.ID+h.query)
	if r.code != 200 || r.body != "two rows" {
		t.Errorf("download: got %v, want what the program wrote", r)
	}
	for header, want := range map[string]string{
		"Content-Disposition": "attachment; filename*=UTF-8''gr%C3%B6%C3%9Fe%201.txt", "Content-Length": "8",
		"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff",
	} {
		if got := r.header.Get(header); got != want {
			t.Errorf("download: %s is %q, want %q", header, got, want)
		}
	}
	// Older apps find the names of a session's files in a list.
	var list []struct {
		Name, ID string
		Metadata map[string]string
	}
	full := user().files(t, http.MethodGet, "/files/"+left.Storage+"?detail=full")
	if err := json.Unmarshal([]byte(full.body), &list); err != nil || len(list) != 1 || list[0].ID != left.ID ||
		list[0].Name != left.Storage+"/"+left.ID+".txt" || list[0].Metadata["original-filename"] != left.Name {
		t.Errorf("list: got %v (%v), want the file that the program left", full, err)
	}
}

// writes writes a file as the app does for its models, and reads it in the next run.
func (h host) writes(t *testing.T, user visitor) {
	t.Helper()
	e := user().exec(t, nil, plain{Lang: "bash", Code: py(`
		python3 - <<'LIBRECHAT'
		import base64, pathlib
		path = pathlib.Path("/mnt/data/notes/plan.md")
		path.parent.mkdir(parents=True, exist_ok=True)
		path.write_bytes(base64.b64decode("IyBQbGFuCg=="))
		print("written")
		LIBRECHAT
	`)})
	if e.code != 200 || e.Stdout != "written\n" || e.Stderr != "" {
		t.Fatalf("here-document: got %v, want it to run", e)
	}
	left := e.file(t, "notes/plan.md").fileRef
	next := user().exec(t, nil, plain{Lang: "bash", Code: "cat notes/plan.md", Session: e.Session, Files: []fileRef{h.refer(left)}})
	if next.Stdout != "# Plan\n" {
		t.Errorf("the next run: got %v, want the file that was written", next)
	}
}

// deletes deletes a file, after which it is nowhere.
func (h host) deletes(t *testing.T, user visitor, f fileRef) {
	t.Helper()
	file, object := "/files/"+f.Storage+"/"+f.ID+h.query, "/sessions/"+f.Storage+"/objects/"+f.ID+h.query
	if r := user().files(t, http.MethodDelete, file); r.code != 200 {
		t.Errorf("delete: got %v, want 200", r)
	}
	for _, gone := range []struct{ method, path, body string }{
		{http.MethodDelete, file, `{"error":"File not found"}`},
		{http.MethodDelete, object, `{"error":"File not found"}`},
		{http.MethodGet, object, `{"error":"File not found"}`},
		{http.MethodGet, "/download/" + f.Storage + "/" + f.ID + h.query, `{"error":"File not found","details":"The file may have expired or does not exist"}`},
	} {
		if r := user().files(t, gone.method, gone.path); r.code != 404 || r.body != gone.body {
			t.Errorf("%s %s after it: got %v, want 404 %s", gone.method, gone.path, r, gone.body)
		}
	}
	if r := user().files(t, http.MethodGet, "/files/"+f.Storage); r.code != 200 || r.body != "[]" {
		t.Errorf("list after it: got %v, want []", r)
	}
	user.mayNotRefer(t, h.refer(f))
}

// mayNotRefer checks that a program is not given a file.
func (v visitor) mayNotRefer(t *testing.T, f fileRef) {
	t.Helper()
	if e := v().exec(t, nil, plain{Lang: "bash", Code: "cat *", Files: []fileRef{f}}); e.code != 403 || e.Error != "Unauthorized file reference" {
		t.Errorf("a program with %+v: got %v, want 403", f, e)
	}
}

// TestHostSkills uploads the files of a skill together, for all users of a tenant.
func TestHostSkills(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		server := serve(t, s, withHost())
		ada, eve := server.visitor(t, hostKey(), "one", "ada"), server.visitor(t, hostKey(), "one", "eve")
		skill := "skill_" + uuid.NewString()
		r := ada().uploadTo(t, "/upload/batch", form{
			fields: map[string]string{"kind": "skill", "id": skill, "version": "3", "read_only": "true"},
			files:  []formFile{{"pdf/SKILL.md", "# PDF\n"}, {"pdf/scripts/run.sh", "echo run\n"}},
		})
		var body struct {
			Message string
			Storage string `json:"storage_session_id"`
			Files   []struct{ Status, FileName, FileID string }
		}
		if err := json.Unmarshal([]byte(r.body), &body); err != nil || r.code != 200 || body.Message != "success" || len(body.Files) != 2 {
			t.Fatalf("batch: got %v (%v), want two files stored", r, err)
		}
		var refs []fileRef
		for _, f := range body.Files {
			refs = append(refs, fileRef{ID: f.FileID, Name: f.FileName, Storage: body.Storage, Kind: "skill", Resource: skill, Version: 3})
		}
		scope := url.Values{"kind": {"skill"}, "id": {skill}, "version": {"3"}}.Encode()
		if r := eve().files(t, http.MethodGet, "/sessions/"+body.Storage+"/objects/"+refs[0].ID+"?"+scope); r.code != 200 || !strings.Contains(r.body, `"readOnly":true`) {
			t.Errorf("object: got %v, want a file that is read-only", r)
		}
		e := eve().exec(t, nil, plain{Lang: "bash", Code: "bash pdf/scripts/run.sh; chmod -R u+w pdf; echo changed >pdf/SKILL.md", Files: refs})
		if e.Stdout != "run\n" {
			t.Errorf("got %v, want the skill's script to run", e)
		}
		e.leaves(t, "pdf/SKILL.md inherited", "pdf/scripts/run.sh inherited")
		if got := e.file(t, "pdf/SKILL.md"); got.Kind != "skill" || got.Resource != skill || got.Version != 3 {
			t.Errorf("got %+v, want it to be the skill's", got)
		}
		refs[0].Version = 4
		eve.mayNotRefer(t, refs[0])
	})
}

// TestHostUsers lets two users of one tenant and one of another try all that they can
// do with what is not theirs.
func TestHostUsers(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		server := serve(t, s, withHost())
		users := map[string]visitor{
			"ada of one": server.visitor(t, hostKey(), "one", "ada"), "eve of one": server.visitor(t, hostKey(), "one", "eve"), "ada of two": server.visitor(t, hostKey(), "two", "ada"),
		}
		for name, owner := range users {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := newerHost.upload(t, owner, "secret", "secret")
				paused := owner().pause(t, program{Tools: tools("ask"), Files: []fileRef{newerHost.refer(f)}, Code: "await ask()\nprint(open('secret').read())"})
				for other, user := range users {
					if other == name {
						continue
					}
					tryFile(t, user(), other, f)
					user.mayNotRefer(t, newerHost.refer(f))
					if e := user().exec(t, nil, plain{Lang: "bash", Code: "ls", Session: f.Storage}); e.Stdout != "" || e.Session == f.Storage {
						t.Errorf("the session of another, as %s: got %v, want a new one", other, e)
					}
					user().post(t, paused.answers(echo)).fails(t, 403, "Forbidden")
				}
				a := owner().post(t, paused.answers(echo))
				a.completes(t, "secret\n")
				if got := owner().download(t, f); got != "secret" {
					t.Errorf("the file is %q now, want it as it was", got)
				}
			})
		}
	})
}
